"""Two controllers of one history: Apache Kafka's and kraftd, started on copies of one formatted directory.

Both get the same requests. Their answers and logs are then made comparable: ids are translated, and
addresses, times and error texts masked.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from kraftd.controller_node.routes import ROWS
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.topic_record import TopicRecord
from kraftd.types import METADATA_TOPIC_ID, parse_uuid
from kraftd.wire.api import ApiKey, request_class, response_version
from kraftd.wire.batch import CorruptBatch, control_records, iter_batches, records
from kraftd.wire.codec import decode
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import EncodeError, ProtocolError
from kraftd.wire.frames import encode_request, parse_request_header, parse_response
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record
from kraftd.wire.table import api_key, table_of
from testkit.client import Client
from testkit.cluster import CONTROLLER_ID
from testkit.node import Controller, Kind, answers_api_versions
from testkit.process import HOST, free_port
from tests.wire.java_json import struct_json

_SERVED = frozenset(row[0] for row in ROWS)
_TIMES = frozenset({"lastFetchTimestamp", "lastCaughtUpTimestamp", "issueTimestamp", "throttleTimeMs"})
# In Kafka, records of these types come in the order of a hash table within one batch.
_UNORDERED = frozenset(
    {
        "PartitionChangeRecord",
        "ConfigRecord",
        "RemoveTopicRecord",
        "FeatureLevelRecord",
        "ClientQuotaRecord",
        "RemoveAccessControlEntryRecord",
        "UserScramCredentialRecord",
        "RemoveUserScramCredentialRecord",
    }
)
CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"  # the same in every run, for the same requests from the same seed
DIRECTORY_ID = b"\x7e" * 16  # stands for both controllers' directory id in requests and comparisons
# With these, no controller writes a record by itself: each comes from a request.
PROPERTIES = {
    "metadata.max.idle.interval.ms": 0,
    "broker.session.timeout.ms": 3_600_000,
    "auto.leader.rebalance.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
}


def take_records(answer: Message) -> list[bytes]:
    """Remove the record batches of each partition from a fetch's answer, and return them."""
    batches = []
    for topic in getattr(answer, "responses", ()):
        for partition in getattr(topic, "partitions", ()):
            if hasattr(partition, "records"):
                batches.append(bytes(partition.records or b""))
                partition.records = b""
    return batches


class GaveUp(Exception):
    """A controller gave up its leadership after an internal fault: Kafka's does so at some requests."""


class LogPart(NamedTuple):
    """A part of a log: its data records with offset and epoch, and all of it in comparable form."""

    records: list[tuple[int, int, Message]]
    batches: list[Any]


class Side:
    """One of the two controllers, with a connection and a translation of ids."""

    answer_wait_s = 30.0

    def __init__(
        self, kind: Kind, home: Path, properties: Mapping[str, object], absent: Sequence[int] | None
    ) -> None:
        port = free_port()
        address = f"{HOST}:{port}"
        quorum: dict[str, object] = {"controller.quorum.bootstrap.servers": address}
        if absent is not None:
            voters = [f"{CONTROLLER_ID}@{address}", *(f"{voter}@{HOST}:1" for voter in absent)]
            quorum = {"controller.quorum.voters": ",".join(voters)}
        merged = {**properties, **quorum}
        self.controller = Controller(kind, CONTROLLER_ID, home / kind, port, merged)
        self.home, self.port = home / kind, port
        # Ids that this side drew (of topics, ACLs, tokens) -> ids that both sides share, and the reverse.
        self.ours: dict[bytes | str, bytes | str] = {}
        self.theirs: dict[bytes | str, bytes | str] = {}
        self.next_offset = 0
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"<Side {self.controller!r} log read to {self.next_offset}>"

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client(HOST, self.port, timeout_s=self.answer_wait_s)
        return self._client

    def knows_directory(self) -> None:
        """Mask the directory id of this side like the other's."""
        text = (self.controller.data / "meta.properties").read_text()
        (line,) = (line for line in text.splitlines() if line.startswith("directory.id="))
        self.same(parse_uuid(line.partition("=")[2]), DIRECTORY_ID)

    def is_registered(self) -> bool:
        """Return whether the controller's registration, the last record without a request, is committed."""
        return bool(self.client.call(DescribeClusterRequest(endpoint_type=2), 1).brokers)

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, request: Message, version: int) -> Message | str:
        """The answer, or the error if there is none."""
        try:
            answer: Message = self.client.call(self.translated(request), version)
        except (ConnectionError, TimeoutError) as error:
            self.disconnect()
            return type(error).__name__
        return answer

    def translated(self, request: Message) -> Message:
        """The request with this side's ids, also within an Envelope."""
        copy: Message = replaced(request, self.theirs)
        if isinstance(copy, EnvelopeRequest):
            with suppress(ProtocolError, EncodeError, ValueError):  # deliberately malformed
                frame = bytes(copy.request_data)
                header, key, version, start = parse_request_header(frame)
                carried = decode(request_class(key), version, frame, start)
                parts = encode_request(
                    key, version, header.correlation_id, header.client_id, replaced(carried, self.theirs)
                )
                copy.request_data = b"".join(parts)[4:]
        return copy

    def answer_view(self, request: Message, version: int, answer: Message | str) -> Any:
        """An answer in comparable form; that in an Envelope is unpacked."""
        if isinstance(answer, str):
            return answer
        if not isinstance(request, EnvelopeRequest) or not isinstance(answer, EnvelopeResponse):
            return self.view(answer, version, api_key(request))
        shown: dict[str, Any] = {"errorCode": answer.error_code}
        if answer.response_data is not None:
            _, key, carried_version, _ = parse_request_header(bytes(request.request_data))
            header, carried = parse_response(key, carried_version, bytes(answer.response_data))
            shown["correlationId"] = header.correlation_id
            shown["carried"] = self.view(carried, carried_version, key)
        return shown

    def view(self, answer: Message, version: int, key: int) -> Any:
        """An answer as JSON, without the fields that may differ."""
        table = table_of(type(answer))
        batches = take_records(answer)
        shown = struct_json(table, table.root, replaced(answer, self.ours), response_version(key, version))
        shown = self._masked("", shown)
        if key == ApiKey.CREATE_TOPICS and version >= 7:  # topics that were only validated have ids as well
            for topic in shown["topics"]:
                topic_id = parse_uuid(topic["topicId"])
                if topic_id not in self.theirs and topic_id != bytes(16):
                    topic["topicId"] = "an id"
        if key == ApiKey.API_VERSIONS:  # kraftd does not serve all of Kafka's APIs
            # Kafka counts a level that is written again unchanged as a new epoch.
            shown["finalizedFeaturesEpoch"] = min(shown.get("finalizedFeaturesEpoch", -1), 0)
            shown["apiKeys"] = [api for api in shown["apiKeys"] if api["apiKey"] in _SERVED]
        if key == ApiKey.DESCRIBE_QUORUM and not shown["errorCode"]:  # kraftd's text names what it refuses
            shown.pop("errorMessage", None)
        if batches:
            shown["records"] = [self.record_views(data) for data in batches]
        return shown

    def _masked(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._masked(key, item) for key, item in value.items()}
        if isinstance(value, list):
            items = [self._masked(name, item) for item in value]
            return sorted(items, key=repr) if items and isinstance(items[0], dict) else items
        if name == "errorMessage":
            return value and "a text"
        if name in _TIMES and isinstance(value, int):
            return value if value <= 0 else "a time"
        if name == "port" and value == self.port:
            return "own port"
        if isinstance(value, str):
            return re.sub(rf"\b{self.port}\b", "PORT", value.replace(str(self.home), "HOME"))
        return value

    # -- the log
    def read_log(self) -> LogPart:
        """The new part of the log."""
        fresh: list[tuple[int, int, Message]] = []
        views: list[Any] = []
        while data := self._fetch():
            for batch in iter_batches(data):
                if not batch.header.is_control:
                    for record in records(batch):
                        assert record.value is not None
                        decoded = decode_record(record.value)
                        self.learn_ids(decoded.message)
                        shared = replaced(decoded.message, self.ours)
                        fresh.append((record.offset, batch.header.leader_epoch, shared))
                self.next_offset = batch.header.last_offset + 1
            views += self.record_views(data)
        return LogPart(fresh, views)

    def learn_ids(self, record: Message) -> None:
        """Map the id that this side drew in a record to a shared one."""
        if isinstance(record, TopicRecord):
            self._new_id(record.topic_id)
        elif isinstance(record, AccessControlEntryRecord):
            self._new_id(record.id)

    def _new_id(self, own: bytes) -> None:
        number = len(self.ours)
        self.same(own, b"\x7f" + bytes(11) + number.to_bytes(4, "big"))

    def same(self, own: bytes | str, shared: bytes | str) -> None:
        """Map this side's id to the shared one, in both directions."""
        self.ours[own] = shared
        self.theirs[shared] = own

    def _fetch(self) -> bytes:
        epoch = 1 if self.next_offset else 0
        partition = FetchPartition(0, 1, self.next_offset, epoch)
        topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        answer = self.client.call(FetchRequest(topics=[topic]), 13)
        (found,) = answer.responses[0].partitions
        if found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise GaveUp(self.controller.kind)
        assert found.error_code == 0, f"{self!r}: {answer!r}"
        return bytes(found.records or b"")

    def record_views(self, data: bytes) -> list[Any]:
        """Each complete batch of a fetch: its place and records; Kafka may cut the last one short."""
        shown: list[Any] = []
        batches = iter_batches(data)
        while True:
            try:
                batch = next(batches, None)
            except CorruptBatch as problem:
                assert problem.truncated and shown and self.controller.kind == "apache", (
                    f"{self!r}: {problem}"
                )
                batch = None
            if batch is None:
                return shown
            base_offset, epoch = batch.header.base_offset, batch.header.leader_epoch
            shown.append([base_offset, epoch, _ordered(self._batch_views(batch))])

    def _batch_views(self, batch: Any) -> Iterator[Any]:
        if batch.header.is_control:
            for control in control_records(batch):
                yield ["control", int(control.type), control.version]
            return
        for record in records(batch):
            assert record.value is not None
            yield self.record_view(*decode_record(record.value))

    def record_view(self, message: Message, version: int) -> list[Any]:
        """A metadata record in comparable form: its name, its version and its fields."""
        table = table_of(type(message))
        shown = struct_json(table, table.root, replaced(message, self.ours), version)
        if table.name == "RegisterControllerRecord":
            shown.pop("incarnationId")
        return [table.name, version, self._masked("", shown)]


class Pair:
    """Both sides; the first is the oracle.

    `absent` are the ids of other voters, which never run; with them the quorum is static.
    """

    side_type: type[Side] = Side

    def __init__(
        self,
        home: Path,
        *,
        absent: Sequence[int] | None = None,
        properties: Mapping[str, object] = PROPERTIES,
    ) -> None:
        kinds: tuple[Kind, Kind] = ("apache", "kraftd")
        self.sides = [self.side_type(kind, home, properties, absent) for kind in kinds]
        self.absent = absent
        self.cluster_id = CLUSTER_ID

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.sides:
            side.disconnect()
            side.controller.kill()
            shutil.rmtree(side.controller.data, ignore_errors=True)

    @property
    def apache(self) -> Side:
        return self.sides[0]

    def start(self, *format_arguments: str, registers: bool = True) -> Self:
        """Format each side's own directory (the voters' addresses differ) and start both.

        Before metadata.version 3.7-IV0 no controller `registers` itself.
        """
        for side in self.sides:
            side.controller.format(
                self.cluster_id, *(["--standalone"] if self.absent is None else []), *format_arguments
            )
            side.knows_directory()
            side.controller.start()
        for side in self.sides:
            if self.absent:  # without a leader there are no records
                side.controller.wait(partial(answers_api_versions, side.port), "answers ApiVersions")
                side.answer_wait_s = 1.0
                continue
            side.controller.wait_ready()
            if registers:
                side.controller.wait(side.is_registered, "registers itself")
        return self

    def ask(self, request: Message, version: int) -> tuple[list[Any], list[LogPart]]:
        """The answers of both sides, and what the request added to their logs."""
        answers = [side.ask(request, version) for side in self.sides]
        # The logs first: their records define the ids in the answers.
        parts = [] if self.absent else [side.read_log() for side in self.sides]
        views = [
            side.answer_view(request, version, answer)
            for side, answer in zip(self.sides, answers, strict=True)
        ]
        return views, parts


def _ordered(shown: Iterator[Any]) -> list[Any]:
    """The records in an order without regard to Kafka's hashing of names and random ids."""
    ordered: list[Any] = []
    for kind, group in groupby(shown, key=lambda one: one[0]):
        if kind in _UNORDERED:
            ordered += sorted(group, key=repr)
        elif kind == "PartitionRecord":  # CreatePartitions handles topics in the order of a hash table
            ordered += sorted(group, key=lambda one: one[2]["topicId"])
        else:
            ordered += group
    return ordered


def replaced(value: Any, ids: Mapping[bytes | str, bytes | str]) -> Any:
    """A copy of the value with all ids in it translated."""
    if isinstance(value, (bytes, str)):
        return ids.get(value, value)
    if isinstance(value, Message):
        copy = type(value)()
        for name in value.__struct_fields__:
            setattr(copy, name, replaced(getattr(value, name), ids))
        return copy
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(item, ids) for item in value)
    return value
