"""Three controllers of one kind that act on requests only: all their timeouts are an hour.

Both kinds start, one after the other, on copies of one history: with the same ids, ports, voters and bytes.
Thus their answers are comparable as they are, but for times and error texts.
"""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kraftd.controller_node.routes import ROWS
from kraftd.log.disk import RealDisk
from kraftd.messages.api_versions_response import ApiVersion, ApiVersionsResponse, SupportedFeatureKey
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.describe_quorum_response import PartitionData as Described
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.metadata_dir.files.bootstrap import read_bootstrap
from kraftd.metadata_dir.files.checkpoint import BOOTSTRAP_ID, CheckpointWriter, checkpoint_path
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.formatting.voters import InitialVoter, voters_record
from kraftd.raft.log_view import LogView
from kraftd.types import METADATA_TOPIC_ID, Endpoint, OffsetAndEpoch, parse_uuid
from kraftd.wire.api import ApiKey, response_version, valid_versions
from kraftd.wire.batch import CorruptBatch, control_records, iter_batches, records
from kraftd.wire.frames import encode_response, parse_request_header
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from kraftd.wire.table import api_key, table_of
from testkit.client import Client
from testkit.node import Controller, Kind, answers_api_versions
from testkit.process import HOST, free_port, wait_until
from testkit.quorum import DESCRIBE
from tests.kafka.differential.pair import CLUSTER_ID, take_records
from tests.wire.java_json import struct_json

VOTERS = (1, 2, 3)
HOUR_MS = 3_600_000
SNAPSHOT = OffsetAndEpoch(40, 3)  # the log starts at its end
_LISTENER = "CONTROLLER"
_PROPERTIES = {
    "controller.quorum.election.timeout.ms": HOUR_MS,
    "controller.quorum.election.backoff.max.ms": HOUR_MS,
    "controller.quorum.fetch.timeout.ms": HOUR_MS,
    "controller.quorum.request.timeout.ms": HOUR_MS,
    "metadata.max.idle.interval.ms": 0,
    "metadata.log.max.snapshot.interval.ms": 0,
    "broker.session.timeout.ms": HOUR_MS,
    "auto.leader.rebalance.enable": "false",
}
_SERVED = frozenset(row[0] for row in ROWS)
_TIMES = frozenset({"lastFetchTimestamp", "lastCaughtUpTimestamp"})


class History:
    """The initial directories of all quorums of one test, and their addresses."""

    def __init__(self, home: Path, *, static: bool) -> None:
        self.home, self.static = home, static
        self.ports = {node_id: free_port() for node_id in VOTERS}
        if static:
            named = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in self.ports.items())
            self.properties = {**_PROPERTIES, "controller.quorum.voters": named}
        else:
            servers = ",".join(f"{HOST}:{port}" for port in self.ports.values())
            self.properties = {**_PROPERTIES, "controller.quorum.bootstrap.servers": servers}
        self.directory_ids = {node_id: bytes([0x70 + node_id]) * 16 for node_id in VOTERS}
        for node_id in VOTERS:
            self._make(node_id)

    def __repr__(self) -> str:
        return f"<History {'static' if self.static else 'dynamic'} at {SNAPSHOT} in {self.home}>"

    def controller(self, kind: Kind, node_id: int, home: Path) -> Controller:
        return Controller(kind, node_id, home / f"{kind}-{node_id}", self.ports[node_id], self.properties)

    def voters(self) -> list[InitialVoter]:
        return [
            InitialVoter(node_id, HOST, self.ports[node_id], directory_id)
            for node_id, directory_id in self.directory_ids.items()
        ]

    def _make(self, node_id: int) -> None:
        """Make a directory whose log is empty and starts at a snapshot's end, as after a download."""
        controller = self.controller("kraftd", node_id, self.home / "history")
        initial = ",".join(map(str, self.voters()))
        controller.format(CLUSTER_ID, *([] if self.static else ["--initial-controllers", initial]))
        if self.static:
            text = (controller.data / "meta.properties").read_text()
            (line,) = (line for line in text.splitlines() if line.startswith("directory.id="))
            self.directory_ids[node_id] = parse_uuid(line.partition("=")[2])
        disk, metadata = RealDisk(), str(controller.metadata_dir)
        first = list(read_bootstrap(disk, str(controller.data)) or ())
        first += [
            VersionedRecord(ConfigRecord(4, "", "log.retention.ms", str(1000 + number)), 0)
            for number in range(9)
        ]
        Path(checkpoint_path(metadata, BOOTSTRAP_ID)).unlink(missing_ok=True)
        controller.metadata_dir.mkdir(exist_ok=True)
        writer = CheckpointWriter(
            disk,
            metadata,
            SNAPSHOT,
            last_contained_log_timestamp_ms=1,
            now_ms=1,
            kraft_version=0 if self.static else 1,
            voters=None if self.static else voters_record(self.voters(), _LISTENER),
        )
        writer.append([encode_record(record) for record in first])
        writer.freeze()
        voters = [Voter(node_id) for node_id in VOTERS]
        state = QuorumStateData(leader_id=-1, leader_epoch=SNAPSHOT.epoch, voted_id=-1, current_voters=voters)
        QuorumStateFile(disk, metadata).write(state, 0 if self.static else 1)

    def copy(self, kind: Kind) -> list[Controller]:
        """Copy the directories for controllers of that kind; the controllers are not started."""
        controllers = [self.controller(kind, node_id, self.home) for node_id in VOTERS]
        for controller in controllers:
            source = self.home / "history" / f"kraftd-{controller.node_id}" / "data"
            shutil.copytree(source, controller.data)
        return controllers


class View(NamedTuple):
    """The state that all controllers of the quorum share once they have caught up.

    `epochs` are the log's epochs with their start offsets, `batch_starts` those of its control batches. The
    number of batches with the controllers' registrations varies.
    """

    leader_id: int
    epoch: int
    log: LogView
    epochs: list[tuple[int, int]]
    batch_starts: list[int]


class TimelessQuorum:
    """The controllers of one kind, a connection to each, and the content of their log."""

    def __init__(self, history: History, kind: Kind) -> None:
        self.history, self.kind = history, kind
        self.controllers = {one.node_id: one for one in history.copy(kind)}
        self._clients: dict[int, Client] = {}
        self._epochs: list[tuple[int, int]] = []
        self._starts: list[int] = []
        self._end = SNAPSHOT.offset
        self._registered: set[int] = set()

    def __repr__(self) -> str:
        return f"<TimelessQuorum of {self.kind}, log read to {self._end}>"

    def __enter__(self) -> TimelessQuorum:
        try:
            for controller in self.controllers.values():
                controller.start()
            for controller in self.controllers.values():
                controller.wait(partial(answers_api_versions, controller.port), "answers ApiVersions", 180)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()
        for controller in self.controllers.values():
            controller.kill()
            shutil.rmtree(controller.data, ignore_errors=True)

    def ask(self, node_id: int, request: Message, version: int) -> Message | str:
        """The answer, or the error if there is none."""
        try:
            if node_id not in self._clients:
                self._clients[node_id] = Client(HOST, self.controllers[node_id].port, timeout_s=30)
            answer: Message = self._clients[node_id].call(request, version)
        except (ConnectionError, TimeoutError) as error:
            client = self._clients.pop(node_id, None)
            if client is not None:
                client.close()
            return type(error).__name__
        return answer

    def describe(self, node_id: int) -> Described | None:
        """That controller's description of the quorum, if it leads."""
        answer: Any = self.ask(node_id, DESCRIBE, 2)
        assert not isinstance(answer, str), f"{self.controllers[node_id]!r}: {answer}"
        described: Described = answer.topics[0].partitions[0]
        return None if described.error_code else described

    def led_by(self, node_id: int) -> int | None:
        """The epoch in which that controller leads, if it does."""
        described = self.describe(node_id)
        return None if described is None else described.leader_epoch

    def settled(self, leader_id: int, voters: Sequence[int] = VOTERS, *, past: int = 0) -> View:
        """Wait until that controller leads, has committed beyond that offset, and all voters have its log."""
        found: list[Described] = []

        def level() -> bool:
            found[:] = [one for one in [self.describe(leader_id)] if one is not None]
            if not found:
                return False
            end = found[0].high_watermark
            ends = {one.replica_id: one.log_end_offset for one in found[0].current_voters}
            return (
                end > past
                and set(ends) == set(voters)
                and all(offset == end for node_id, offset in ends.items() if node_id in VOTERS)
                and self._read(leader_id, found[0].leader_epoch) == end
                and self._registered == set(VOTERS)  # the last records that come without a request
            )

        wait_until(level, f"{self!r}: {leader_id} leads and all voters have its log", 60, poll_s=0.02)
        log = LogView(SNAPSHOT.offset, self._end, self._epochs, {SNAPSHOT: 1})
        return View(leader_id, found[0].leader_epoch, log, list(self._epochs), list(self._starts))

    def _read(self, leader_id: int, epoch: int) -> int:
        """Read the new part of the log; return its end."""
        while True:
            last = self._epochs[-1][0] if self._epochs else SNAPSHOT.epoch
            topic = FetchTopic(
                topic_id=METADATA_TOPIC_ID, partitions=[FetchPartition(0, epoch, self._end, last)]
            )
            answer: Any = self.ask(leader_id, FetchRequest(max_bytes=1 << 20, topics=[topic]), 17)
            (partition,) = answer.responses[0].partitions
            assert partition.error_code == 0, f"{self!r}: {answer!r}"
            data = bytes(partition.records or b"")
            if not data:
                return self._end
            for batch in iter_batches(data):
                header = batch.header
                if header.leader_epoch > last:
                    self._epochs.append((header.leader_epoch, header.base_offset))
                    last = header.leader_epoch
                if header.is_control:
                    self._starts.append(header.base_offset)
                else:
                    decoded = [decode_record(one.value).message for one in records(batch) if one.value]
                    self._registered |= {
                        one.controller_id for one in decoded if isinstance(one, RegisterControllerRecord)
                    }
                self._end = header.next_offset


# --- what is compared -----------------------------------------------------------------------------------


def answer_view(request: Message, version: int, answer: Message | str) -> Any:
    """An answer as JSON, without the fields that may differ."""
    if isinstance(answer, str):
        return answer
    table, key = table_of(type(answer)), api_key(request)
    batches = take_records(answer)
    shown = _masked("", struct_json(table, table.root, answer, response_version(key, version)))
    if key == ApiKey.API_VERSIONS:  # kraftd does not serve all of Kafka's APIs
        shown["finalizedFeaturesEpoch"] = min(shown.get("finalizedFeaturesEpoch", -1), 0)
        shown["apiKeys"] = [api for api in shown["apiKeys"] if api["apiKey"] in _SERVED]
    if key == ApiKey.DESCRIBE_QUORUM and not shown["errorCode"]:  # kraftd's text names what it refuses
        shown.pop("errorMessage", None)
    if batches:
        shown["records"] = [list(_batches(data)) for data in batches]
    return shown


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(key, item) for key, item in value.items()}
    if name == "grantingVoters":  # the voters that answered first
        return f"{len(value)} voters"
    if isinstance(value, list):
        items = [_masked(name, item) for item in value]
        return sorted(items, key=repr) if items and isinstance(items[0], dict) else items
    if name == "errorMessage":
        return value and "a text"
    if name in _TIMES:
        return value if value <= 0 else "a time"
    return value


def _batches(data: bytes) -> Iterator[Any]:
    """Each complete batch: its place, and a control batch's content. Successive data batches count as one."""
    batches, row = iter_batches(data), list[int]()
    while True:
        try:
            batch = next(batches, None)
        except CorruptBatch as problem:
            assert problem.truncated, problem
            batch = None
        header = None if batch is None else batch.header
        if row and (header is None or header.is_control):
            yield row
            row = []
        if batch is None or header is None:
            return
        if not header.is_control:
            row = [row[0] if row else header.base_offset, header.next_offset, header.leader_epoch]
            continue
        shown: list[Any] = [header.base_offset, header.next_offset, header.leader_epoch]
        shown += [
            [int(one.type), _masked("", struct_json(table, table.root, one.message, one.version))]
            for one in control_records(batch)
            if one.message is not None and one.version is not None
            for table in [table_of(type(one.message))]
        ]
        yield shown


class StandIn:
    """A port in place of a node's.

    It accepts connections, and answers only ApiVersions, once `kraft_versions` is set.
    """

    def __init__(self) -> None:
        self.kraft_versions: tuple[int, int] | None = None
        self._socket = socket.create_server((HOST, 0), backlog=100)
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<StandIn at {self.endpoint!r} of kraft.version {self.kraft_versions}>"

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._connections:
            connection.close()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(_LISTENER, *self._socket.getsockname())

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                header, key, version, _ = parse_request_header(frame)
                if key != ApiKey.API_VERSIONS or self.kraft_versions is None:
                    continue
                apis = [ApiVersion(int(each), *valid_versions(each)) for each in ApiKey]
                features = [SupportedFeatureKey("kraft.version", *self.kraft_versions)]
                answer = ApiVersionsResponse(api_keys=apis, supported_features=features)
                connection.sendall(b"".join(encode_response(key, version, header.correlation_id, answer)))
