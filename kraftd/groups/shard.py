"""The coordinator of the groups of one partition of ``__consumer_offsets``.

A shard is loading, active or failed. While it is active it makes records, applies them at once, and keeps the
answers until the high watermark has passed them. If an append fails, what its records changed is taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.ground.refusal import Refusal
from kraftd.groups.batches import BATCH_BYTES, Batch, Batches, size_of
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.membership import unload
from kraftd.groups.classic.rebalance import heard, prepare
from kraftd.groups.effects import (
    AppendMarker,
    AppendRecords,
    PartitionFailed,
    PartitionLoaded,
    ReadRecords,
    ScheduleLoading,
)
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.events import RecordsRead
from kraftd.groups.group import Group
from kraftd.groups.offsets.removal import expire_offsets, remove_topics
from kraftd.groups.records import UnreadableRecord, encode_record
from kraftd.groups.replay import replay
from kraftd.groups.shard_loader import ShardLoader
from kraftd.groups.state import Outcome, ShardState
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError

EXPIRATION = "expiration"
GROUPS_A_SLICE = 200  # whose members or offsets one event loop callback looks through
ACTIONS_A_SLICE = 200  # that are due

Operation = Callable[[], Outcome]
Answer = Callable[[Any], None]
Refuse = Callable[[ErrorCode], Any]


class ShardStatus(Enum):
    """Whether a shard serves requests."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class Waiting:
    """An operation whose records, or those before it, are not committed yet."""

    __slots__ = ("answer", "deadline_ms", "end_offset", "is_over", "outcome", "refuse")

    def __init__(
        self,
        outcome: Outcome,
        answer: Answer | None,
        refuse: Refuse | None,
        end_offset: int,
        deadline_ms: int,
    ) -> None:
        self.outcome = outcome
        self.answer = answer
        self.refuse = refuse
        self.end_offset = end_offset
        self.deadline_ms = deadline_ms
        self.is_over = False


class Shard:
    """One partition's groups; `effects` collects what the broker is to do."""

    def __init__(self, partition: int, leader_epoch: int, state: ShardState, effects: list[Effect]) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = state
        self.effects = effects
        self.status = ShardStatus.LOADING
        self.start_offset = 0
        self.loader: ShardLoader | None = None
        self.arming: Iterator[Group] | None = (
            None  # groups of a loaded partition, whose members are not watched
        )
        self.batches = Batches(0, state.config.max_batch_bytes)
        self.waiting: deque[Waiting] = deque()

    def __repr__(self) -> str:
        what = self.loader if self.status is ShardStatus.LOADING else self.batches
        return f"<Shard {self.partition} {self.status.value} epoch {self.leader_epoch}, {what!r}>"

    # Loading

    def load(self, start_offset: int, end_offset: int) -> None:
        """Read the partition from its start to its end."""
        self.start_offset = start_offset
        self.loader = ShardLoader(self.state, start_offset, end_offset)
        self.read_on()

    def read_on(self) -> None:
        loader = self.loader
        assert loader is not None
        if loader.is_done:
            self.activate(loader)
        else:
            most = self.state.config.offsets_load_buffer_bytes
            self.effects.append(ReadRecords(self.partition, self.leader_epoch, loader.next_offset, most))

    def take_read(self, event: RecordsRead) -> None:
        """Begin to replay what was read."""
        loader = self.loader
        if loader is None:
            return
        if event.error is not None or not event.data:
            self.fail(event.error or f"no records at offset {loader.next_offset}, before the log end")
            return
        loader.take(event.data, event.high_watermark)
        self.replay_slice()

    def load_slice(self) -> None:
        """Load on, for a slice of the event loop's time."""
        if self.arming is not None:
            self.watch_slice(self.arming)
        else:
            self.replay_slice()

    def replay_slice(self) -> None:
        """Replay a slice; then let others run, read on, or begin to serve."""
        loader = self.loader
        if loader is None:
            return
        before = loader.next_offset
        try:
            is_through = loader.run()
        except (CorruptBatch, UnreadableRecord, ProtocolError) as problem:
            self.fail(f"{type(problem).__name__}: {problem}")
            return
        if not is_through or loader.next_offset == before:
            if is_through:
                self.fail(f"the batches read end before offset {before + 1}")
            else:
                self.effects.append(ScheduleLoading(self.partition, self.leader_epoch))
        else:
            self.read_on()

    def activate(self, loader: ShardLoader) -> None:
        """All records are replayed: watch the members, which get a whole session timeout, and serve."""
        self.batches.next_offset = loader.next_offset
        self.state.timeline.offset = loader.next_offset
        self.state.offsets.sweep()
        self.arming = iter(list(self.state.groups.values()))
        self.watch_slice(self.arming)

    def watch_slice(self, groups: Iterator[Group]) -> None:
        """Watch the members of some groups; after the last one, serve requests."""
        state, loader = self.state, self.loader
        assert loader is not None
        for group in islice(groups, GROUPS_A_SLICE):
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    heard(state, group, member)
                if len(group.members) > state.config.group_max_size:
                    self.write(partial(prepare, state, group))
            loader.group_count += 1
        if loader.group_count < len(state.groups):
            self.effects.append(ScheduleLoading(self.partition, self.leader_epoch))
            return
        self.loader = self.arming = None
        self.status = ShardStatus.ACTIVE
        self.schedule_expiration()
        counts = (loader.record_count, loader.group_count)
        self.effects.append(PartitionLoaded(self.partition, self.leader_epoch, *counts))

    def fail(self, reason: str) -> None:
        """Stop: the partition cannot be loaded."""
        self.loader = self.arming = None
        self.status = ShardStatus.FAILED
        self.effects.append(PartitionFailed(self.partition, self.leader_epoch, reason))

    def unload(self) -> None:
        """Another broker leads the partition: refuse all that waits."""
        self.loader = self.arming = None
        self.state.deadlines.clear()
        self.end(list(self.waiting), ErrorCode.NOT_COORDINATOR)
        self.waiting.clear()
        if self.status is ShardStatus.ACTIVE:
            for group in self.state.groups.values():
                if isinstance(group, ClassicGroup):
                    unload(self.state, group)
        self.status = ShardStatus.FAILED

    # Writing

    def write(
        self,
        operation: Operation,
        answer: Answer | None = None,
        refuse: Refuse | None = None,
        producer: tuple[int, int] = (-1, -1),
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
        producer: tuple[int, int] = (-1, -1),
    ) -> None:
        """Apply and append the records of an outcome."""
        if outcome.records and not self.add_records(outcome, producer):
            if outcome.after is not None:
                self.follow(outcome.after(ErrorCode.MESSAGE_TOO_LARGE))
            self.refuse(answer, refuse, ErrorCode.MESSAGE_TOO_LARGE)
            return
        if outcome.response is None and outcome.after is None and (refuse is None or not outcome.records):
            return
        end_offset = self.batches.next_offset
        deadline_ms = self.state.now_ms + self.state.config.offsets_commit_timeout_ms
        waiting = Waiting(outcome, answer, refuse, end_offset, deadline_ms)
        if end_offset <= self.state.timeline.committed:
            self.end([waiting], None)
        else:
            self.waiting.append(waiting)

    def add_records(self, outcome: Outcome, producer: tuple[int, int]) -> bool:
        """Put records into batches and apply them.

        Return whether they fit: an outcome whose records must be together may need more than a batch.
        """
        batches, state = self.batches, self.state
        encoded = [encode_record(record) for record in outcome.records]
        sizes = [size_of(record) for record in encoded]
        needed = sum(sizes) if outcome.atomic or producer != (-1, -1) else max(sizes)
        if needed + BATCH_BYTES > batches.max_bytes:
            return False
        batch: Batch | None = batches.open_batch(needed, producer)
        for record, pair, size in zip(outcome.records, encoded, sizes, strict=True):
            if batch is None or batch.size_bytes + size > batches.max_bytes:
                batch = batches.begin(producer)
            if outcome.replayed:
                replay(state, record, batches.next_offset, producer[0])
            batches.add(batch, pair)
        return True

    def end_transaction(
        self,
        producer: tuple[int, int],
        coordinator_epoch: int,
        is_commit: bool,
        answer: Answer,
    ) -> None:
        """Apply and append the marker of a transaction's end (WriteTxnMarkers); answer with an error code."""
        batch = self.batches.begin(producer)
        batch.marker = (coordinator_epoch, is_commit)
        self.state.timeline.offset = self.batches.next_offset
        self.state.offsets.end_transaction(producer[0], is_commit)
        self.batches.next_offset += 1
        self.submit(Outcome(response=ErrorCode.NONE), answer, answer_to_failed_append)

    def flush(self) -> None:
        """Append the next batch, unless one is on its way."""
        batch = self.batches.to_send()
        if batch is None:
            return
        place = (self.partition, self.leader_epoch, batch.batch_id, batch.base_offset, self.state.now_ms)
        if batch.marker is None:
            self.effects.append(AppendRecords(*place, batch.records, *batch.producer))
        else:
            self.effects.append(AppendMarker(*place, *batch.producer, *batch.marker))

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
        self.state.offsets.sweep()
        return True

    def commit(self, offset: int) -> None:
        """The high watermark has moved: answer what waited for it."""
        if offset <= self.state.timeline.committed:
            return
        self.state.timeline.commit(offset)
        while self.waiting and self.waiting[0].end_offset <= offset:
            self.end([self.waiting.popleft()], None)
        self.state.offsets.sweep()

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
        if self.waiting:
            first_ms = self.waiting[0].deadline_ms
            due_ms = first_ms if due_ms is None else min(due_ms, first_ms)
        return due_ms

    def tick(self) -> None:
        """Perform what is due."""
        for _ in range(ACTIONS_A_SLICE):  # what is due beyond these is due at once again
            action = self.state.deadlines.take(self.state.now_ms)
            if action is None:
                break
            self.write(action)
        while self.waiting and self.waiting[0].deadline_ms <= self.state.now_ms:
            self.end([self.waiting.popleft()], ErrorCode.REQUEST_TIMED_OUT)

    def schedule_expiration(self) -> None:
        due_ms = self.state.now_ms + self.state.config.offsets_retention_check_interval_ms
        self.state.deadlines.schedule(EXPIRATION, due_ms, self.expire)

    def expire(self) -> Outcome:
        """Remove expired offsets, and groups that are empty without them."""
        self.schedule_expiration()
        return self.in_slices("expiring", partial(expire_offsets, self.state), list(self.state.groups))

    def remove_topics(self, topics: dict[str, bytes]) -> Outcome:
        """Remove the offsets of deleted topics."""
        remove = partial(remove_topics, self.state, topics)
        groups = dict.fromkeys([*self.state.offsets.by_group, *self.state.offsets.open_producers])
        return self.in_slices(("removing", *topics), remove, list(groups))

    def in_slices(
        self, key: Hashable, operation: Callable[[list[str]], Outcome], groups: list[str]
    ) -> Outcome:
        """Perform an operation on some groups, and on the others in later event loop callbacks."""
        if len(groups) > GROUPS_A_SLICE:
            rest = partial(self.in_slices, key, operation, groups[GROUPS_A_SLICE:])
            self.state.deadlines.schedule(key, self.state.now_ms + 1, rest)
        return operation(groups[:GROUPS_A_SLICE])
