"""One partition of a coordinator's topic: it is loaded, written and kept in memory.

A shard is loading, active or failed. While it is active it makes records, applies them at once, and keeps the
answers until the high watermark has passed them. If an append fails, what its records changed is taken back.
What the records mean is said by a subclass: `kraftd.groups.group_shard`, `kraftd.groups.transactions.shard`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.ground.refusal import Refusal
from kraftd.groups.batches import BATCH_BYTES, NO_PRODUCER, Batch, Batches, Producer, size_of
from kraftd.groups.deadlines import Deadlines
from kraftd.groups.effects import (
    AppendMarker,
    AppendRecords,
    PartitionFailed,
    PartitionLoaded,
    ReadRecords,
    ScheduleLoading,
)
from kraftd.groups.events import RecordsRead
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, KeyAndValue, UnreadableRecord, encode_record
from kraftd.groups.shard_loader import ShardLoader
from kraftd.groups.timeline import Timeline
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError
from kraftd.wire.records import Record

ACTIONS_A_SLICE = 200  # that are due

Operation = Callable[[], Outcome]
Answer = Callable[[Any], None]
Refuse = Callable[[ErrorCode], Any]


class ShardStatus(Enum):
    """Whether a shard serves requests."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class Limits(Struct, frozen=True):
    """What bounds a shard: the most that a batch and a read may take, and how long a write may wait.

    max_batch_bytes holds until `Shard.limit_batches` is called. compresses: batches become smaller yet.
    """

    max_batch_bytes: int
    load_buffer_bytes: int
    write_timeout_ms: int
    compresses: bool = False


class CoordinatorState:
    """What every shard's state has; `now_ms` is the time of the current step."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.timeline = Timeline()
        self.deadlines = Deadlines()


class Waiting(Struct, eq=False):
    """An operation whose records, or those before it, are not committed yet."""

    outcome: Outcome
    answer: Answer | None
    refuse: Refuse | None
    end_offset: int
    deadline_ms: int
    is_over: bool = False


class Shard:
    """One partition; `effects` collects what the broker is to do. The methods that begin with `on_` are a
    subclass's.
    """

    state: CoordinatorState

    def __init__(self, partition: int, leader_epoch: int, limits: Limits, effects: list[Effect]) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.limits = limits
        self.effects = effects
        self.status = ShardStatus.LOADING
        self.start_offset = 0
        self.load_began_ms = 0
        self.loader: ShardLoader | None = None
        self.is_replayed = False  # all of the log, although requests may not be served yet
        self.batches = Batches(0, limits.max_batch_bytes)
        self.waiting: deque[Waiting] = deque()
        self._timeout_ms = 0  # while something waits: at or before the first of its deadlines
        self.unsent: dict[int, Any] = {}  # shards with records to append, of a whole coordinator

    def __repr__(self) -> str:
        what = self.loader if self.status is ShardStatus.LOADING else self.batches
        where = f"{self.partition} {self.status.value} epoch {self.leader_epoch}"
        return f"<{type(self).__name__} {where}, {what!r}>"

    @property
    def timeline(self) -> Timeline:
        return self.state.timeline

    def limit_batches(self, max_bytes: int) -> None:
        """From now on a batch takes at most so many bytes: max.message.bytes of the topic."""
        self.batches.max_bytes = max_bytes

    # What a subclass says

    def on_record(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply a record that is written."""
        raise NotImplementedError

    def on_loaded_record(self, record: Record, producer_id: int) -> None:
        """Apply a record of the log. Raises UnreadableRecord."""
        raise NotImplementedError

    def on_loaded_in_a_row(self, records: Sequence[tuple[Any, ...]]) -> int:
        """Apply records of the log, of no transaction, while a short way is known; return how many."""
        return 0

    def on_transaction_end(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a transaction that has written into this partition."""

    def on_loaded(self) -> None:
        """All records are replayed: `serve`, now or after some slices."""
        self.serve(0)

    def on_slice(self) -> None:
        """Go on with what `on_loaded` began."""

    def on_settled(self) -> None:
        """Changes became final, or were taken back."""

    def on_unload(self) -> None:
        """Another broker leads the partition, which was served here."""

    # ShardLoader

    def load(self, start_offset: int, end_offset: int) -> None:
        """Read the partition from its start to its end."""
        self.start_offset = start_offset
        self.load_began_ms = self.state.now_ms
        self.loader = ShardLoader(self, start_offset, end_offset)
        self.read_on()

    def read_on(self) -> None:
        loader = self.loader
        assert loader is not None
        if loader.is_done:
            self.activate(loader)
        else:
            most = self.limits.load_buffer_bytes
            self.effects.append(ReadRecords(self.partition, self.leader_epoch, loader.next_offset, most))

    def take_read(self, event: RecordsRead) -> None:
        """Begin to replay what was read."""
        loader = self.loader
        if loader is None:
            return
        if event.error is not None or not event.data:
            missing = f"no records at offset {loader.next_offset}, before the log end"
            self.fail(event.error or missing, is_damaged=event.is_damaged)
            return
        loader.take(event.data, event.high_watermark)
        self.replay_slice()

    def load_slice(self) -> None:
        """Load on, for a slice of the event loop's time."""
        if not self.is_replayed:
            self.replay_slice()
        elif self.loader is not None:
            self.on_slice()

    def replay_slice(self) -> None:
        """Replay a slice; then let others run, read on, or begin to serve."""
        loader = self.loader
        if loader is None:
            return
        before = loader.next_offset
        try:
            is_through = loader.run()
        except (CorruptBatch, UnreadableRecord, ProtocolError) as problem:
            is_damaged = isinstance(problem, CorruptBatch)
            self.fail(f"{type(problem).__name__}: {problem}", is_damaged=is_damaged)
            return
        if not is_through or loader.next_offset == before:
            if is_through:
                self.fail(f"the batches read end before offset {before + 1}")
            else:
                self.effects.append(ScheduleLoading(self.partition, self.leader_epoch))
        else:
            self.read_on()

    def activate(self, loader: ShardLoader) -> None:
        """All records are replayed."""
        self.is_replayed = True
        self.batches.next_offset = loader.next_offset
        self.state.timeline.offset = loader.next_offset
        self.on_loaded()

    def serve(self, count: int) -> None:
        """Serve requests, with so many groups or transactional ids."""
        assert self.loader is not None
        record_count, self.loader = self.loader.record_count, None
        self.status = ShardStatus.ACTIVE
        self.state.deadlines.alarm.lower(self.deadline_ms())
        took_ms = max(0, self.state.now_ms - self.load_began_ms)
        self.effects.append(PartitionLoaded(self.partition, self.leader_epoch, record_count, count, took_ms))

    def fail(self, reason: str, *, is_damaged: bool = False) -> None:
        """Stop: the partition cannot be loaded."""
        self.loader = None
        self.status = ShardStatus.FAILED
        self.effects.append(PartitionFailed(self.partition, self.leader_epoch, reason, is_damaged))

    def unload(self) -> None:
        """Another broker leads the partition: refuse all that waits."""
        self.loader = None
        self.state.deadlines.clear()
        self.end(list(self.waiting), ErrorCode.NOT_COORDINATOR)
        self.waiting.clear()
        if self.status is ShardStatus.ACTIVE:
            self.on_unload()
        self.status = ShardStatus.FAILED

    # Writing

    def write(
        self,
        operation: Operation,
        answer: Answer | None = None,
        refuse: Refuse | None = None,
        producer: Producer = NO_PRODUCER,
    ) -> None:
        """Perform an operation: apply its records, and answer once they, and all before them, are committed.

        answer takes the response; refuse makes one for an error code.
        """
        self.state.timeline.offset = self.batches.next_offset
        try:
            outcome = operation()
        except Refusal as error:
            self.refuse(answer, refuse, error.code)
            return
        self.submit(outcome, answer, refuse, producer)

    def submit(
        self,
        outcome: Outcome,
        answer: Answer | None = None,
        refuse: Refuse | None = None,
        producer: Producer = NO_PRODUCER,
    ) -> None:
        """Apply and append the records of an outcome."""
        if outcome.records and not self.add_records(outcome, producer):
            if outcome.after is not None:
                self.follow(outcome.after(ErrorCode.MESSAGE_TOO_LARGE))
            self.refuse(answer, refuse, ErrorCode.MESSAGE_TOO_LARGE)
            return
        if outcome.response is None and outcome.after is None and (refuse is None or not outcome.records):
            return
        self.answer_later(outcome, answer, refuse)

    def answer_later(self, outcome: Outcome, answer: Answer | None, refuse: Refuse | None) -> None:
        """Answer an operation once all that is written is committed, or at once if it is."""
        end_offset = self.batches.next_offset
        timeout_ms = self.limits.write_timeout_ms if outcome.timeout_ms is None else outcome.timeout_ms
        deadline_ms = self.state.now_ms + timeout_ms
        waiting = Waiting(outcome, answer, refuse, end_offset, deadline_ms)
        if end_offset <= self.state.timeline.committed:
            self.end([waiting], None)
        else:
            if not self.waiting or deadline_ms < self._timeout_ms:
                self._timeout_ms = deadline_ms
                self.state.deadlines.alarm.lower(deadline_ms)
            self.waiting.append(waiting)

    def add_records(self, outcome: Outcome, producer: Producer) -> bool:
        """Put records into batches and apply them.

        Return whether they fit: an outcome whose records must be together may need more than a batch. If they
        are compressed, only the log can say that.
        """
        self.unsent[self.partition] = self
        batches = self.batches
        encoded = [encode_record(record) for record in outcome.records]
        sizes = [size_of(pair) for pair in encoded]
        needed = sum(sizes) if outcome.atomic or producer != NO_PRODUCER else max(sizes)
        if needed + BATCH_BYTES > batches.max_bytes and not self.limits.compresses:
            return False
        batch: Batch | None = batches.open_batch(needed, producer)
        for record, pair, size in zip(outcome.records, encoded, sizes, strict=True):
            if batch is None or batch.size_bytes + size > batches.max_bytes:
                batch = batches.begin(producer)
            if outcome.replayed:
                self.on_record(record, batches.next_offset, producer[0])
            batches.add(batch, pair, size)
        return True

    def add_encoded(self, records: list[KeyAndValue], needed: int) -> None:
        """Put records of this size into one batch. The caller knows that they fit, and applies them."""
        self.unsent[self.partition] = self
        batches = self.batches
        batches.add_all(batches.open_batch(needed), records, needed)

    def flush(self) -> None:
        """Append the next batch, unless one is on its way."""
        batch = self.batches.to_send()
        if batch is None:
            return
        place = (self.partition, self.leader_epoch, batch.batch_id, batch.base_offset, self.state.now_ms)
        if batch.marker is None:
            self.effects.append(AppendRecords(*place, batch.records, *batch.producer))
        else:
            producer_id, producer_epoch, _ = batch.producer
            coordinator_epoch, is_commit, version = batch.marker
            self.effects.append(
                AppendMarker(*place, producer_id, producer_epoch, coordinator_epoch, is_commit, version)
            )

    def appended(self, batch_id: int) -> None:
        """A batch is in the log; the next one can go."""
        if self.batches.appended(batch_id) is not None:
            self.flush()

    def append_failed(self, batch_id: int, error: ErrorCode) -> bool:
        """Take back what a batch changed, and all that was built on it.

        Return whether the batch was on its way.
        """
        offset = self.batches.failed(batch_id)
        if offset is None:
            return False
        self.state.timeline.revert(offset)
        failed = [waiting for waiting in self.waiting if waiting.end_offset > offset]
        self.waiting = deque(waiting for waiting in self.waiting if waiting.end_offset <= offset)
        self.end(failed, error)
        self.on_settled()
        return True

    def commit(self, offset: int) -> None:
        """The high watermark has moved: answer what waited for it."""
        if offset <= self.state.timeline.committed:
            return
        self.state.timeline.commit(offset)
        waiting, ended = self.waiting, []
        while waiting and waiting[0].end_offset <= offset:
            ended.append(waiting.popleft())
        self.end(ended, None)
        self.on_settled()

    def end(self, waiting: list[Waiting], error: ErrorCode | None) -> None:
        """Answer operations: their records are committed, or never will be."""
        for one in waiting:
            if one.is_over:
                continue
            one.is_over = True
            if one.outcome.after is not None:
                self.follow(one.outcome.after(error))
            if error is not None:
                self.refuse(one.answer, one.refuse, error)
            elif one.answer is not None and one.outcome.response is not None:
                one.answer(one.outcome.response)

    def follow(self, outcome: Outcome | None) -> None:
        """Write what the end of an operation has led to."""
        if outcome is not None and self.status is ShardStatus.ACTIVE:
            self.submit(outcome)

    def refuse(self, answer: Answer | None, refuse: Refuse | None, error: ErrorCode) -> None:
        if answer is not None and refuse is not None:
            answer(refuse(error))

    # Time

    def deadline_ms(self) -> int | None:
        """Nothing happens by itself before this time."""
        due_ms = self.state.deadlines.next_ms()
        if not self.waiting:
            return due_ms
        return self._timeout_ms if due_ms is None else min(due_ms, self._timeout_ms)

    def clock_moved(self, moved_ms: int) -> None:
        """Wait for as long as before: no session ends early or late because the clock was set."""
        self.state.deadlines.move(moved_ms)
        self._timeout_ms += moved_ms
        for one in self.waiting:
            one.deadline_ms += moved_ms

    def tick(self) -> None:
        """Perform what is due."""
        for _ in range(ACTIONS_A_SLICE):  # what is due beyond these is due at once again
            action = self.state.deadlines.take(self.state.now_ms)
            if action is None:
                break
            self.write(action)
        if self.waiting and self._timeout_ms <= self.state.now_ms:
            self._time_out()

    def _time_out(self) -> None:
        """Refuse what has waited for too long."""
        now_ms = self.state.now_ms
        late = [one for one in self.waiting if one.deadline_ms <= now_ms]
        self.waiting = deque(one for one in self.waiting if one.deadline_ms > now_ms)
        self._timeout_ms = min((one.deadline_ms for one in self.waiting), default=now_ms)
        self.end(late, ErrorCode.REQUEST_TIMED_OUT)
