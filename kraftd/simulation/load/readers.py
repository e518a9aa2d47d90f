"""Consumers that read the metadata log by fetch sessions from any node, as Kafka's clients do (KIP-227).

A reader has one fetch under way. The reader abandons a fetch without an answer, with its connection, and
begins another session with a full fetch. The reader stays with a node for a while and takes its positions to
the next one.
"""

from __future__ import annotations

from typing import Any

from kraftd.fetch.session_cache import next_epoch
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.simulation.checkers.consensus.fetch_sessions import (
    METADATA,
    PartitionKey,
    Reported,
    SessionChecker,
    Wanted,
    partitions_of,
    reported_of,
)
from kraftd.simulation.processes.client_side import ClientSide
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response

FETCH = 1
ANSWER_WAIT_US = 2_000 * MS  # for an answer, beyond the fetch's MaxWaitMs
CATCH_UP_GAP_US = 10 * MS  # between fetches, once the world has healed
MOVE_CHANCE = 0.04  # to another node, at a fetch
VERSIONS = (11, 12, 13, 17, 18)
STRANGE = (Wanted("no-such-topic", bytes([9]) * 16, 0), Wanted(METADATA.topic, METADATA.topic_id, 1))


class FetchCall:
    """One fetch of a reader. `full` is what a full fetch would have returned when its answer was made."""

    __slots__ = (
        "connection_id", "full", "last_epoch", "max_bytes", "number", "offset", "reader", "requested",
        "sent_us", "session_epoch", "version", "was_parked",
    )  # fmt: skip

    def __init__(self, reader: SessionReader, number: int, session_epoch: int, max_bytes: int) -> None:
        self.reader = reader
        self.number = number
        self.connection_id = reader.connection_id
        self.version = reader.version
        self.session_epoch = session_epoch
        self.max_bytes = max_bytes
        self.offset = reader.offset
        self.last_epoch = reader.last_epoch
        self.requested = dict(reader.requested)
        self.full: dict[PartitionKey, Reported] = {}
        self.sent_us = -1  # when it reached the node
        self.was_parked = False

    def __repr__(self) -> str:
        session = f"{self.reader.session_id}/{self.session_epoch}"
        return f"fetch {self.number} of reader {self.reader.number} in session {session}"


class SessionReader:
    """One consumer. `requested` are the partitions of its session, as in its last requests."""

    def __init__(self, readers: Readers, number: int) -> None:
        self.readers = readers
        self.world = readers.world
        self.number = number
        self.rng = self.world.rng("reader", number)
        self.version: int = self.rng.choice(VERSIONS)
        self.sends_epoch = self.rng.chance(0.5)  # of the last record that it has
        self.side: ClientSide | None = None
        self.connection_id = 0
        self.call: FetchCall | None = None
        self.offset = 0
        self.last_epoch = -1
        self.leader_epoch = -1
        self._forget_session()

    def _forget_session(self) -> None:
        self.session_id = 0
        self.session_epoch = 0
        self.wanted: dict[PartitionKey, Wanted] = {METADATA.key(self.version): METADATA}
        self.requested: dict[PartitionKey, FetchTopic] = {}
        self.known: dict[PartitionKey, Reported] = {}

    # --- requests ---

    def go_on(self) -> None:
        """Send the next fetch, to another node now and then."""
        if self.call is not None or not self.readers.running:
            return
        if self.side is None or self.side.process.ended or self.rng.chance(MOVE_CHANCE):
            self.move()
        if self.side is None:
            self._later()
            return
        self._fetch()

    def _later(self) -> None:
        world = self.world
        is_behind = world.healed and self.offset < world.committed.end
        gap_us = CATCH_UP_GAP_US if is_behind else world.options.reader_gap_us
        world.schedule.after(self.rng.between(1, 2 * gap_us), self.go_on)

    def move(self) -> None:
        """Go to any running node; the session at the former one stays open."""
        cluster = self.world.cluster  # a node that is ahead may return lost records until it ends
        alive = [host.process for host in cluster.alive() if not cluster.is_ahead(host)]
        self._hang_up()
        self.side = self.readers.side_of(self.rng.choice(alive)) if alive else None
        self._forget_session()

    def _hang_up(self) -> None:
        self.call = None
        if self.side is not None and not self.side.process.ended:
            self.side.close(self.connection_id)
        self.connection_id = self.readers.next_number()

    def _fetch(self) -> None:
        rng = self.rng
        if rng.chance(0.1):
            self._change_topics()
        is_full = not self.session_epoch
        before = {} if is_full else self.requested
        self.requested = {
            key: one.in_request(self.version, self._position(one)) for key, one in self.wanted.items()
        }
        forgotten = [(key, topic) for key, topic in before.items() if key not in self.requested]
        large = self.world.healed or rng.chance(0.8)
        wait_ms = rng.choice((0, 50, 500))
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=rng.choice((1, 1, 400)),
            max_bytes=1 << 20 if large else 100,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=[topic for key, topic in self.requested.items() if before.get(key) != topic],
            forgotten_topics_data=[
                ForgottenTopic(topic.topic, topic.topic_id, (key[1],)) for key, topic in forgotten
            ],
        )
        for key, _ in forgotten:
            self.known.pop(key, None)
        call = self.call = FetchCall(self, self.readers.next_number(), self.session_epoch, request.max_bytes)
        self.readers.send(call, request)
        self.world.schedule.after(wait_ms * MS + ANSWER_WAIT_US, self._expire, call)

    def _position(self, one: Wanted) -> FetchPartition:
        if one is not METADATA:
            return FetchPartition(one.partition, partition_max_bytes=1 << 20)
        return FetchPartition(
            one.partition,
            self.leader_epoch,
            self.offset,
            self.last_epoch if self.sends_epoch and self.version >= 12 else -1,
            partition_max_bytes=1 << 20,
        )

    def _change_topics(self) -> None:
        """Add a topic to the session, or remove all but the metadata log."""
        if len(self.wanted) > 3:
            self.wanted = {METADATA.key(self.version): METADATA}
            return
        side = self.side
        assert side is not None
        names = side.view.image.topic_names()
        found = [*STRANGE, *(Wanted(name, topic_id, 0) for name, topic_id in sorted(names.items()))]
        one = self.rng.choice(found)
        self.wanted[one.key(self.version)] = one

    def _expire(self, call: FetchCall) -> None:
        if self.call is call:
            self.world.trace.kinds["session fetch given up"] += 1
            self.begin_anew()

    def begin_anew(self) -> None:
        """Abandon the fetch: the next one is full, and names the session that it replaces."""
        self._hang_up()
        self.session_epoch = 0
        self.known = {}
        self._later()

    # --- answers ---

    def take_in(self, call: FetchCall, message: FetchResponse) -> None:
        """Handle an answer."""
        if self.call is not call:
            return
        self.call = None
        kinds, checks = self.world.trace.kinds, self.readers.checks
        if message.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            kinds["session not found"] += 1
            self.session_id = self.session_epoch = 0
            self.known = {}
            self._later()
            return
        if message.error_code:
            checks.fail("S20", f"{call!r} is refused with {message.error_code}, it is the session's next")
        kinds["session fetch answered"] += 1
        if call.session_epoch:
            if message.session_id != self.session_id:
                checks.fail("S20", f"{call!r} is answered for session {message.session_id}")
            self.session_epoch = next_epoch(call.session_epoch)
        else:
            self.session_id = message.session_id
            self.session_epoch = 1 if message.session_id else 0
            self.known = {}
            kinds["session begun" if message.session_id else "no room for a session"] += 1
        self._learn(call, message)
        checks.received(call, self.known)
        if self.known[METADATA.key(self.version)].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
            self.move()  # that node is behind
        self._later()

    def _learn(self, call: FetchCall, message: FetchResponse) -> None:
        partitions = partitions_of(message, call.version)
        for key, one in self.known.items():
            self.known[key] = one._replace(has_records=False)
        for key, data in partitions.items():
            self.known[key] = reported_of(data, has_records=bool(data.records))
        of_log = partitions.get(METADATA.key(call.version))
        if of_log is not None:
            self._read(call, of_log)

    def _read(self, call: FetchCall, data: PartitionData) -> None:
        offset, epoch = self.readers.checks.records(call, data)
        if offset > call.offset:
            self.world.trace.kinds["session fetch brought records"] += 1
        self.offset, self.last_epoch = offset, epoch
        self.leader_epoch = max(self.leader_epoch, epoch)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            assert self.side is not None
            self.world.trace.kinds["reader behind the log start"] += 1
            self.offset, self.last_epoch = self.side.view.log_start_offset, -1
        elif data.error_code == ErrorCode.FENCED_LEADER_EPOCH:
            assert self.side is not None
            in_answer = call.version >= 16  # older versions get it from Metadata
            current_epoch = data.current_leader.leader_epoch if in_answer else self.side.view.epoch
            self.leader_epoch = max(self.leader_epoch, current_epoch)

    def __repr__(self) -> str:
        return f"<SessionReader {self.number} at {self.offset}, {self.call!r} of {self.side!r}>"


class Readers:
    """The readers of a world, and the connections that carry their requests."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng("readers")
        self.checks = SessionChecker(world)
        self.readers = [SessionReader(self, number) for number in range(world.options.reader_count)]
        self.running = False
        self._calls: dict[int, FetchCall] = {}
        self._last = 0

    def start(self) -> None:
        self.running = True
        for reader in self.readers:
            reader.go_on()

    def stop(self) -> None:
        self.running = False

    def have_read(self, end: int) -> bool:
        """Return whether every reader has read up to that offset."""
        return all(reader.offset >= end for reader in self.readers)

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def side_of(self, process: Process) -> ClientSide:
        if process.clients is None:
            process.clients = ClientSide(process)
        side: ClientSide = process.clients
        return side

    # --- the network ---

    def delay_us(self) -> int:
        return self.rng.between(*self.world.network.delay_us)

    def _is_lost(self) -> bool:
        return not self.world.healed and self.rng.chance(self.world.options.reader_loss)

    def send(self, call: FetchCall, request: FetchRequest) -> None:
        """Carry a fetch to the node; it may be lost or duplicated."""
        parts = encode_request(FETCH, call.version, call.number & 0x7FFFFFFF, "reader", request)
        frame = b"".join(parts)[4:]
        if self._is_lost():
            return
        self._calls[call.number] = call
        delay_us = self.delay_us()
        self.world.schedule.after(delay_us, self._arrive, call, call.number, frame)
        if not self.world.healed and self.rng.chance(self.world.options.duplication):
            self.world.schedule.after(
                delay_us + self.delay_us() * 4, self._arrive, call, self.next_number(), frame
            )

    def _arrive(self, call: FetchCall, slot: int, frame: bytes) -> None:
        side = call.reader.side
        if side is None or call.connection_id != call.reader.connection_id:
            return
        if slot == call.number:
            call.sent_us = self.world.schedule.now_us
        side.receive(call.connection_id, slot, memoryview(frame))

    def answered(self, side: ClientSide, slot: int, parts: list[Any]) -> None:
        """Carry an answer; a duplicated fetch is answered twice, and the reader accepts one."""
        call = self._calls.pop(slot, None)
        if call is None or not parts:
            return
        _, message = parse_response(FETCH, call.version, memoryview(b"".join(parts))[4:])
        assert isinstance(message, FetchResponse)
        self.checks.made(side, call, message)
        call.was_parked = self.world.schedule.now_us > call.sent_us
        if call.session_epoch and not message.error_code and side.keeps(message.session_id):
            requested = list(call.requested.values())
            call.full = self.checks.full_fetch(side, requested, call.version, call.max_bytes)
        if not self._is_lost():
            self.world.schedule.after(self.delay_us(), call.reader.take_in, call, message)

    def hung_up(self, connection_id: int) -> None:
        """Handle that a node closes a connection."""
        for reader in self.readers:
            if reader.connection_id == connection_id:
                self.world.schedule.after(self.delay_us(), self._lost, reader, connection_id)

    def process_ended(self, process: Process, *, silent: bool) -> None:
        """Notify readers of the end of a process, unless its host has lost power."""
        for reader in self.readers:
            if not silent and reader.side is not None and reader.side.process is process:
                self.world.schedule.after(self.delay_us(), self._lost, reader, reader.connection_id)

    def _lost(self, reader: SessionReader, connection_id: int) -> None:
        if reader.connection_id == connection_id and reader.call is not None:
            reader.move()
            reader.begin_anew()

    def __repr__(self) -> str:
        return f"<Readers {self.readers}>"
