"""A small world for cores: a clock, a network and disks in memory, and the invariants checked at every event.

Messages go through the real codecs. A crashed disk loses what was not synced. Everything is deterministic:
the same calls make the same history.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from typing import Any

from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.config import TAIL_BYTES, DurableState, PartialSnapshot, RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import (
    AbandonSnapshot,
    AppendRecords,
    BeginSnapshot,
    FinishSnapshot,
    LocateBatch,
    PersistElection,
    ResetLog,
    Respond,
    RespondRecords,
    RespondSnapshot,
    Send,
    SyncLog,
    TruncateLog,
    WriteSnapshot,
)
from kraftd.raft.events import (
    BatchLocated,
    ConnectionLost,
    LogStartMoved,
    RecordsSynced,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    SnapshotFinished,
    SnapshotTaken,
    Started,
)
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import NO_VOTERS, VoterSet
from kraftd.types import Endpoint, OffsetAndEpoch, ReplicaKey
from kraftd.wire.batch import ControlRecordType, build_control_batch, iter_batches
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.message import Message
from tests.raft.invariants import Invariants

VERSIONS = {
    "Fetch": 18,
    "Vote": 2,
    "BeginQuorumEpoch": 1,
    "EndQuorumEpoch": 1,
    "FetchSnapshot": 1,
    "DescribeQuorum": 2,
    "ApiVersions": 4,
    "AddRaftVoter": 1,
    "RemoveRaftVoter": 0,
    "UpdateRaftVoter": 0,
}
LISTENER = "CONTROLLER"
Source = tuple[int, int, int]  # of a request between nodes: node, incarnation, send id
START_MS = 1_000_000


def version_of(message: Message) -> int:
    return VERSIONS[type(message).__name__.removesuffix("Request").removesuffix("Response")]


def over_the_wire(message: Message, version: int) -> Message:
    """The message as the other side decodes it."""
    return decode(type(message), version, memoryview(encode_bytes(message, version)))


def directory_id(node_id: int, generation: int = 0) -> bytes:
    return bytes([0xD0, generation]) + bytes(10) + node_id.to_bytes(4, "big", signed=True)


def node_config(node_id: int, *, generation: int = 0, **options: Any) -> RaftConfig:
    endpoint = Endpoint(LISTENER, f"n{node_id}", 9000 + node_id % 1000)
    return RaftConfig(node_id, directory_id(node_id, generation), "cluster", (endpoint,), LISTENER, **options)


def bootstrap_batch(voters: VoterSet, kraft_version: int = 1, timestamp_ms: int = 0) -> bytes:
    """The control batch of a formatted directory's bootstrap checkpoint."""
    return build_control_batch(
        [
            (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=kraft_version), 0),
            (ControlRecordType.KRAFT_VOTERS, voters.to_record(), 0),
        ],
        0,
        0,
        timestamp_ms,
    )


class SeededRandomness:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)


class Disk:
    """The files of one replica."""

    def __init__(self, static_voters: VoterSet, bootstrap: bytes) -> None:
        self.static_voters = static_voters
        self.snapshots: dict[OffsetAndEpoch, bytes] = {OffsetAndEpoch(0, 0): bootstrap} if bootstrap else {}
        self.batches: list[tuple[int, int, int, bytes]] = []  # base offset, end offset, epoch, bytes
        self.start_offset = 0
        self.synced_end = 0
        self.election: tuple[QuorumStateData, int] | None = None
        self.part: dict[OffsetAndEpoch, bytearray] = {}
        self.is_new = False  # of a voter that may have forgotten votes

    @property
    def end(self) -> int:
        return self.batches[-1][1] if self.batches else self.start_offset

    def append(self, effect: AppendRecords) -> None:
        assert effect.base_offset == self.end, f"{effect!r} at the end {self.end}"
        for batch in iter_batches(effect.data):
            header = batch.header
            entry = (header.base_offset, header.next_offset, header.leader_epoch, bytes(batch.view))
            self.batches.append(entry)
        assert self.end == effect.end_offset

    def batch_start(self, offset: int) -> int:
        return max([base for base, *_ in self.batches if base <= offset], default=offset)

    def truncate(self, end_offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch[1] <= end_offset]
        assert self.end == end_offset, "truncation inside of a batch"
        self.synced_end = min(self.synced_end, end_offset)

    def reset(self, snapshot_id: OffsetAndEpoch) -> None:
        self.batches = []
        self.start_offset = self.synced_end = snapshot_id.offset
        self.snapshots = {key: data for key, data in self.snapshots.items() if key == snapshot_id}

    def drop_below(self, start_offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch[1] > start_offset]
        self.snapshots = {at: data for at, data in self.snapshots.items() if at.offset >= start_offset}
        self.start_offset = start_offset

    def lose_unsynced(self) -> None:
        self.batches = [batch for batch in self.batches if batch[1] <= self.synced_end]

    def copy(self, of: Disk, end_offset: int) -> None:
        """Hold a copy of another disk's records below that offset, and nothing else."""
        self.batches = [batch for batch in of.batches if batch[1] <= end_offset]
        self.start_offset, self.synced_end = of.start_offset, end_offset

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        found = b""
        for _, end, _, data in self.batches:
            if end <= offset or end > end_offset:
                continue
            if found and len(found) + len(data) > max_bytes:
                break
            found += data
        return found

    def durable_state(self) -> DurableState:
        epochs: list[tuple[int, int]] = []
        history = ControlRecordHistory(self.static_voters)
        newest = max(self.snapshots, key=lambda at: (at.epoch, at.offset), default=None)
        if newest is not None:
            history.read(self.snapshots[newest], at_offset=newest.offset - 1)
        for base_offset, _, epoch, data in self.batches:
            if not epochs or epochs[-1][0] < epoch:
                epochs.append((epoch, base_offset))
            history.read(data)
        sizes = {key: len(data) for key, data in self.snapshots.items()}
        log = LogView(self.start_offset, self.end, epochs, sizes)
        parts = [
            PartialSnapshot(at, len(data), bytes(data[-TAIL_BYTES:]))
            for at, data in self.part.items()
            if data
        ]
        partial = parts[0] if parts else None
        return DurableState(
            self.election[0] if self.election else None, log, history, partial, is_new=self.is_new
        )


class Node:
    """One replica: a core while it runs, and its disk."""

    def __init__(self, config: RaftConfig, disk: Disk, seed: int) -> None:
        self.config = config
        self.disk = disk
        self.rng = SeededRandomness(seed)
        self.core: RaftCore | None = None
        self.sync_due = False  # a sync was requested and is held back

    @property
    def id(self) -> int:
        return self.config.node_id


class World:
    """Nodes by id. `log` is called with every effect, `stepped` after every step of a node. With `autosync`
    a sync ends after a millisecond, else when the test calls `sync`."""

    def __init__(self, *, seed: int = 0, check: bool = True) -> None:
        self.now_ms = START_MS
        self.nodes: dict[int, Node] = {}
        self.autosync = True
        self.sync_takes_ms: Callable[[], int] = lambda: 1
        self.copies_differ = False  # snapshots of one id are not equal byte for byte
        self.copies: dict[OffsetAndEpoch, set[bytes]] = {}
        self.held: set[int] = set()  # nodes whose syncs are held back
        self.cut: set[tuple[int, int]] = set()  # (from, to) that lose messages
        self.puppets: dict[int, Callable[[Source, Message], None]] = {}  # called with each request
        self.seed = seed
        self.log: Callable[[int, Effect], None] = lambda node_id, effect: None
        self.stepped: Callable[[int], None] = lambda node_id: None
        self.answers: dict[Any, tuple[Effect, Message]] = {}  # to clients, by request id
        self.last_request_id: Any = None
        self.invariants = Invariants() if check else None
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self.fetch_versions: dict[int, int] = {}  # by node: its highest version, if that is not the newest
        self._incarnation: dict[int, int] = {}
        self._in_flight: dict[Source, int] = {}  # -> the destination

    # --- building ---

    def add_voters(
        self, ids: Iterable[int], *, static: bool = False, servers: Iterable[int] = (), **options: Any
    ) -> None:
        """Add formatted replicas; their bootstrap servers are all of them and `servers`."""
        ids = list(ids)
        configs = {node_id: node_config(node_id, **options) for node_id in ids}
        if static:
            addresses = {i: (c.listeners[0].host, c.listeners[0].port) for i, c in configs.items()}
            voters, bootstrap = VoterSet.from_static(LISTENER, addresses), b""
        else:
            voters, bootstrap = (
                NO_VOTERS,
                bootstrap_batch(VoterSet.of(*(one.voter_node for one in configs.values()))),
            )
        known = [node_config(one).listeners[0] for one in dict.fromkeys([*ids, *servers])]
        addresses_known = () if static else tuple((one.host, one.port) for one in known)
        for node_id, config in configs.items():
            disk = Disk(voters, bootstrap)
            full = node_config(node_id, bootstrap_servers=addresses_known, **options)
            assert full.voter_node == config.voter_node
            self.nodes[node_id] = Node(full, disk, self.seed * 1000 + node_id)

    def add_observer(self, node_id: int, *, generation: int = 0, **options: Any) -> Node:
        """Add a replica that starts only with the addresses of the others."""
        servers = tuple(
            (node.config.listeners[0].host, node.config.listeners[0].port) for node in self.nodes.values()
        )
        static = next(iter(self.nodes.values())).disk.static_voters
        config = node_config(node_id, generation=generation, bootstrap_servers=servers, **options)
        node = self.nodes[node_id] = Node(config, Disk(static, b""), self.seed * 1000 + node_id)
        return node

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        self._incarnation[node_id] = self._incarnation.get(node_id, 0) + 1
        node.sync_due = False
        node.core = RaftCore(node.config, node.disk.durable_state(), node.rng, Purgatory(), Purgatory())
        if self.invariants:
            self.invariants.started(node)
        self.step(node_id, Started())

    def crash(self, node_id: int, *, silent: bool = False) -> None:
        """kill -9: the kernel resets the node's connections. `silent`: the host is gone without a reset."""
        node = self.nodes[node_id]
        node.core = None
        node.disk.lose_unsynced()
        if not silent:
            for source, target_id in list(self._in_flight.items()):
                if target_id == node_id and self._incarnation[source[0]] == source[1]:
                    self.later(1, source[0], SendFailed(source[2]))
            for other in self.nodes.values():
                if other.core is not None and (node_id, other.id) not in self.cut:
                    self.later(1, other.id, ConnectionLost(node_id))

    # --- running ---

    def later(self, delay_ms: int, node_id: int, event: Event) -> None:
        """Bring the node an event after a delay, unless it stops or restarts before."""
        incarnation = self._incarnation.get(node_id, 0)

        def step_if_running() -> None:
            if self._incarnation.get(node_id, 0) == incarnation and self.nodes[node_id].core is not None:
                self.step(node_id, event)

        self._at(delay_ms, step_if_running)

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, action))

    def step(self, node_id: int, event: Event) -> list[Effect]:
        node = self.nodes[node_id]
        assert node.core is not None
        effects = node.core.step(event, self.now_ms)
        for effect in effects:
            self._perform(node, effect)
            self.log(node_id, effect)
        if self.invariants:
            self.invariants.check(self, node)
        self.stepped(node_id)
        return effects

    def run(self, duration_ms: int, *, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass: messages arrive, syncs end, deadlines come. End early, and return true, when `until`
        holds.
        """
        end_ms = self.now_ms + duration_ms
        for _ in range(200_000):
            if until is not None and until():
                return True
            due = [
                (deadline_ms, node.id)
                for node in self.nodes.values()
                if node.core is not None and (deadline_ms := node.core.deadline_ms()) is not None
            ]
            timer = min(due, default=(end_ms + 1, -1))
            message_ms = self._queue[0][0] if self._queue else end_ms + 1
            if min(timer[0], message_ms) > end_ms:
                break
            if message_ms <= timer[0]:
                self.now_ms = max(self.now_ms, message_ms)
                heapq.heappop(self._queue)[2]()
            else:
                self.now_ms = max(self.now_ms, timer[0])
                self.step(timer[1], DeadlineReached())
        else:
            raise AssertionError("the world does not come to rest")
        self.now_ms = end_ms
        return until is not None and until()

    def sync(self, node_id: int) -> None:
        """End the sync that is held back."""
        node = self.nodes[node_id]
        node.sync_due = False
        node.disk.synced_end = node.disk.end
        self.step(node_id, RecordsSynced(node.disk.end))

    def take_snapshot(self, node_id: int, *, drop_log: bool = True) -> OffsetAndEpoch | None:
        """Snapshot up to the high watermark (None: no batch ends there); `drop_log`: the log begins there."""
        core, disk = self.core(node_id), self.nodes[node_id].disk
        end = core.high_watermark
        epoch = next((epoch for _, end_offset, epoch, _ in disk.batches if end_offset == end), None)
        if epoch is None:
            return None
        snapshot_id = OffsetAndEpoch(end, epoch)
        made_at = node_id if self.copies_differ else 0
        data = bootstrap_batch(core.voters_at(end - 1), core.kraft_version_at(end - 1), made_at) * 3
        self.copies.setdefault(snapshot_id, set()).add(data)
        disk.snapshots[snapshot_id] = data
        self.step(node_id, SnapshotTaken(snapshot_id, len(data)))
        if drop_log:
            disk.drop_below(end)
            self.step(node_id, LogStartMoved(end))
        return snapshot_id

    # --- queries ---

    def leader(self) -> Node | None:
        """The live leader of the highest epoch, once its high watermark is known."""
        leaders = [node for node in self.nodes.values() if node.core is not None and node.core.is_leader]
        return max(leaders, key=lambda node: node.core.epoch if node.core else -1, default=None)

    def core(self, node_id: int) -> RaftCore:
        core = self.nodes[node_id].core
        assert core is not None
        return core

    def ask(self, node_id: int, request_id: Any, message: Message, version: int | None = None) -> None:
        """Send a client's request; its answer appears in `answers`."""
        version = version_of(message) if version is None else version
        self.last_request_id = request_id
        self.step(node_id, RequestReceived(request_id, over_the_wire(message, version), version, LISTENER))
        if self.invariants and isinstance(message, FetchRequest):
            deadline_ms = self.now_ms + message.max_wait_ms
            self.invariants.request_received(self.nodes[node_id], request_id, deadline_ms)

    # --- effects ---

    def _perform(self, node: Node, effect: Effect) -> None:
        disk = node.disk
        if isinstance(effect, PersistElection):
            encode_bytes(effect.state, effect.version)
            if self.invariants:
                self.invariants.persisting(node, effect)
            disk.election = effect.state, effect.version
            disk.is_new = effect.is_new
        elif isinstance(effect, AppendRecords):
            disk.append(effect)
        elif isinstance(effect, SyncLog):
            self._sync_later(node)
        elif isinstance(effect, LocateBatch):
            self.later(0, node.id, BatchLocated(effect.offset, disk.batch_start(effect.offset)))
        elif isinstance(effect, TruncateLog):
            if self.invariants:
                self.invariants.truncating(node, effect.end_offset)
            disk.truncate(effect.end_offset)
        elif isinstance(effect, ResetLog):
            disk.reset(effect.snapshot_id)
        elif isinstance(effect, Send):
            self._send(node, effect)
        elif isinstance(effect, Respond | RespondRecords | RespondSnapshot):
            self._respond(node, effect)
        elif isinstance(effect, BeginSnapshot):
            part = disk.part[effect.snapshot_id] = disk.part.get(effect.snapshot_id, bytearray())
            assert len(part) >= effect.position and len(disk.part) == 1
            del part[effect.position :]
        elif isinstance(effect, WriteSnapshot):
            part = disk.part[effect.snapshot_id]
            assert len(part) == effect.position
            part += effect.data
        elif isinstance(effect, AbandonSnapshot):
            del disk.part[effect.snapshot_id]
        elif isinstance(effect, FinishSnapshot):
            data = disk.snapshots[effect.snapshot_id] = bytes(disk.part.pop(effect.snapshot_id))
            assert data in self.copies[effect.snapshot_id], f"S10: {node.id} has a mixture of snapshots"
            self.later(1, node.id, SnapshotFinished(effect.snapshot_id, len(data), (data,)))

    def _sync_later(self, node: Node) -> None:
        if not self.autosync or node.id in self.held:
            node.sync_due = True
            return
        disk, written, incarnation = node.disk, list(node.disk.batches), self._incarnation[node.id]
        written_end = disk.end

        def done() -> None:
            if self._incarnation[node.id] == incarnation and node.core is not None:
                synced = disk.start_offset
                still = [one for one in written if one[1] > disk.start_offset]
                for old, new in zip(still, disk.batches, strict=False):
                    if old is not new:
                        break  # truncated and written again since the sync began
                    synced = new[1]
                disk.synced_end = max(disk.synced_end, synced)
                self.step(node.id, RecordsSynced(written_end))

        self._at(self.sync_takes_ms(), done)

    def _send(self, node: Node, effect: Send) -> None:
        at = effect.destination.host, effect.destination.port
        target = next(
            (
                one
                for one in self.nodes.values()
                if (one.config.listeners[0].host, one.config.listeners[0].port) == at
            ),
            None,
        )
        is_gone = target is not None and target.core is None and target.id not in self.puppets
        if target is None or (is_gone and (node.id, target.id) not in self.cut):
            self.later(1, node.id, SendFailed(effect.send_id))
            if effect.destination.node_id >= 0:
                self.later(1, node.id, ConnectionLost(effect.destination.node_id))
            return
        if (node.id, target.id) in self.cut:
            return
        if self.invariants:
            self.invariants.sending(node, effect)
        version = version_of(effect.message)
        if isinstance(effect.message, FetchRequest):
            version = min(version, self.fetch_versions.get(target.id, version))
        message = over_the_wire(effect.message, version)
        source: Source = node.id, self._incarnation[node.id], effect.send_id
        if target.id in self.puppets:
            self._in_flight[source] = target.id
            self.puppets[target.id](source, message)
            return
        if isinstance(message, ApiVersionsRequest):
            features = [SupportedFeatureKey("kraft.version", 0, 1)]
            self.answer(source, target.id, ApiVersionsResponse(supported_features=features), 4)
            return
        self._in_flight[source] = target.id
        self.later(1, target.id, RequestReceived(source, message, version, LISTENER))

    def _respond(self, node: Node, effect: Respond | RespondRecords | RespondSnapshot) -> None:
        message: Any = effect.message
        if isinstance(effect, RespondRecords):
            records = node.disk.read(effect.offset, effect.end_offset, effect.max_bytes)
            assert records, f"{effect!r} promised records"
            message.responses[0].partitions[0].records = records
        elif isinstance(effect, RespondSnapshot):
            data = node.disk.snapshots[effect.snapshot_id]
            piece = data[effect.position : effect.position + effect.max_bytes]
            message.topics[0].partitions[0].unaligned_records = piece
        if self.invariants:
            self.invariants.answered(node.id, self._incarnation[node.id], effect.request_id)
        if isinstance(effect.request_id, tuple):
            self.answer(effect.request_id, node.id, message, effect.version)
        else:
            self.answers[effect.request_id] = effect, over_the_wire(message, effect.version)

    def answer(self, source: Source, from_id: int, message: Message, version: int) -> None:
        """Bring a node the answer of another one, if the node still runs."""
        node_id, incarnation, send_id = source
        self._in_flight.pop(source, None)
        if (from_id, node_id) in self.cut or self._incarnation[node_id] != incarnation:
            return
        self.later(1, node_id, ResponseReceived(send_id, over_the_wire(message, version)))

    def isolate(self, *groups: Iterable[int]) -> None:
        """Partition: only nodes of one group reach each other."""
        where = {node_id: index for index, group in enumerate(groups) for node_id in group}
        self.cut = {(a, b) for a in self.nodes for b in self.nodes if a != b and where.get(a) != where.get(b)}

    def heal(self) -> None:
        self.cut = set()


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory_id(node_id))
