"""A share partition: no record is held twice at once, each is delivered until it is done (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from kraftd.ground.effect import Effect
from kraftd.groups.share_state.state_batches import StateBatch, combined
from kraftd.partition.share.aborted import ReadBatch
from kraftd.partition.share.acknowledging import Acknowledgement, acknowledge, expire, release_all
from kraftd.partition.share.acquiring import Acquired, ReadRecords, acquire
from kraftd.partition.share.delivery import Delivery
from kraftd.partition.share.effects import Change, WriteState
from kraftd.partition.share.share_partition import ShareLimits, SharePartition
from kraftd.partition.share.states import (
    ACCEPT,
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    REJECT,
    RELEASE,
    RENEW,
    RecordState,
)
from kraftd.wire.error_code import ErrorCode

LOCK_MS = 1_000
LIMITS = ShareLimits(delivery_count_limit=5, partition_max_record_locks=200, record_lock_duration_ms=LOCK_MS)


class Bench:
    """A share partition over a log of batches, and a share coordinator that answers unless it waits."""

    def __init__(self, sizes: list[int], limits: ShareLimits = LIMITS) -> None:
        self.log: list[ReadBatch] = []
        for size in sizes:
            self.append(size)
        self.limits = limits
        self.now_ms = 10_000
        self.kept: tuple[StateBatch, ...] = ()
        self.kept_start = 0
        self.complete_count = 0
        self.waits = False
        self.error = ErrorCode.NONE
        self.writes: list[WriteState] = []
        self.share = SharePartition(limits, [])
        self.share.load(0, 1, [])

    def append(self, size: int) -> None:
        end = self.end
        self.log.append(ReadBatch(end, end + size - 1))

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else 0

    def reload(self) -> None:
        """Another broker leads, and knows what the coordinator does."""
        self.writes.clear()
        self.share = SharePartition(self.limits, [])
        rows = [Change(*row[:2], RecordState(row.delivery_state), row.delivery_count) for row in self.kept]
        self.share.load(self.kept_start, 1, rows)

    def acquire(self, member: str = "a", most: int = 100, **more: Any) -> list[Acquired]:
        offset = self.share.next_fetch_offset()
        batches = [batch for batch in self.log if batch.last_offset >= offset]
        options = {"batch_size": 10, **more}
        read = ReadRecords(
            member_id=member, fetch_offset=offset, batches=batches, max_records=most, **options
        )
        return acquire(self.share, read, self.now_ms)

    def acknowledge(self, member: str, *rows: tuple[int, int, list[int]]) -> list[ErrorCode]:
        """Acknowledge; the list gets the answer."""
        answers: list[ErrorCode] = []
        acks = [Acknowledgement(*row) for row in rows]
        acknowledge(self.share, member, acks, self.now_ms, answers.append)
        self.tell()
        return answers

    def wait(self, time_ms: int) -> None:
        self.now_ms += time_ms
        if (due_ms := self.share.deadline_ms()) is not None and due_ms <= self.now_ms:
            expire(self.share, self.now_ms)
            self.tell()

    def tell(self) -> None:
        """Take what is written, and answer unless the coordinator waits."""
        effects: list[Effect] = self.share.effects
        self.writes += [effect for effect in effects if isinstance(effect, WriteState)]
        effects.clear()
        while self.writes and not self.waits:
            self.answer(self.writes.pop(0), self.error)

    def answer(self, write: WriteState, error: ErrorCode) -> None:
        if not error:
            self.kept_start, self.complete_count = write.start_offset, write.complete_count
            rows = [StateBatch(one[0], one[1], one[3], one[2]) for one in write.changes]
            self.kept = combined(self.kept, rows, write.start_offset)
        self.share.written(write.write_id, error)
        self.share.effects.clear()


def spans(acquired: list[Acquired]) -> list[tuple[int, int, int]]:
    return [tuple(one) for one in acquired]  # type: ignore[misc]


def test_records_that_are_accepted_are_not_delivered_again() -> None:
    bench = Bench([5, 5])
    assert spans(bench.acquire()) == [(0, 9, 1)]
    assert bench.acquire("b") == []
    assert bench.acknowledge("a", (0, 9, [ACCEPT])) == [ErrorCode.NONE]
    assert (bench.share.start_offset, bench.share.next_fetch_offset()) == (10, 10)
    bench.append(3)
    assert spans(bench.acquire("b")) == [(10, 12, 1)]


def test_released_records_are_delivered_again_until_they_are_archived() -> None:
    bench = Bench([1], ShareLimits(delivery_count_limit=2, record_lock_duration_ms=LOCK_MS))
    for count in (1, 2):
        assert spans(bench.acquire()) == [(0, 0, count)]
        assert bench.acknowledge("a", (0, 0, [RELEASE])) == [0]
    assert bench.acquire() == []
    assert bench.share.start_offset == 1
    assert bench.kept[-1] == StateBatch(0, 0, 2, ARCHIVED)


def test_each_record_of_a_batch_has_its_own_acknowledgement() -> None:
    bench = Bench([6])
    bench.acquire()
    types = [ACCEPT, RELEASE, REJECT, 0, ACCEPT, ACCEPT]
    assert bench.acknowledge("a", (0, 5, types)) == [0]
    assert (bench.share.start_offset, bench.complete_count) == (1, 5)
    assert spans(bench.acquire("b")) == [(1, 1, 2)]
    assert bench.acknowledge("b", (1, 1, [ACCEPT])) == [0]
    assert bench.share.start_offset == 6


def test_what_a_member_does_not_hold_changes_nothing() -> None:
    bench = Bench([4, 4])
    bench.acquire(most=4)
    for rows in ([(0, 3, [ACCEPT]), (4, 7, [ACCEPT])], [(0, 9, [ACCEPT])]):
        assert bench.acknowledge("a", *rows) == [ErrorCode.INVALID_REQUEST]
    assert bench.acknowledge("b", (0, 3, [ACCEPT])) == [ErrorCode.INVALID_RECORD_STATE]
    assert bench.acknowledge("a", (0, 3, [9])) == [ErrorCode.INVALID_REQUEST]
    assert bench.acknowledge("a", (0, 3, [ACCEPT])) == [0]
    assert bench.acknowledge("a", (0, 3, [ACCEPT])) in ([0], [ErrorCode.INVALID_RECORD_STATE])


def test_a_lock_ends_with_its_time_and_can_be_renewed__kip1222() -> None:
    bench = Bench([2, 2])
    bench.acquire()
    bench.wait(LOCK_MS - 1)
    assert bench.acquire("b") == []
    assert bench.acknowledge("a", (0, 1, [RENEW])) == [0]
    bench.wait(1)
    assert spans(bench.acquire("b")) == [(2, 3, 2)]
    bench.wait(LOCK_MS - 1)
    assert spans(bench.acquire("c")) == [(0, 1, 2)]
    assert bench.acknowledge("a", (0, 1, [RENEW])) == [ErrorCode.INVALID_RECORD_STATE]


def test_a_change_that_the_coordinator_does_not_know_is_undone() -> None:
    bench = Bench([3])
    bench.acquire()
    bench.error = ErrorCode.NOT_COORDINATOR
    assert bench.acknowledge("a", (0, 2, [ACCEPT])) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (bench.share.start_offset, bench.share.complete_count) == (0, 0)
    bench.error, bench.waits = ErrorCode.NONE, True
    answers = bench.acknowledge("a", (0, 2, [ACCEPT]))
    assert bench.acknowledge("a", (0, 2, [ACCEPT])) == [ErrorCode.INVALID_RECORD_STATE]
    bench.wait(LOCK_MS)  # the lock ends while the coordinator is asked
    bench.waits, bench.error = False, ErrorCode.FENCED_STATE_EPOCH
    bench.tell()
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert spans(bench.acquire("b")) == [(0, 2, 2)]


def test_a_limit_that_changes_meanwhile_does_not_judge_what_is_undone() -> None:
    bench = Bench([1])
    bench.acquire()
    bench.waits = True
    bench.acknowledge("a", (0, 0, [ACCEPT]))
    bench.share.limits = replace(LIMITS, delivery_count_limit=1)
    bench.wait(LOCK_MS)
    bench.answer(bench.writes.pop(), ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.share.in_flight.first.at(0).state is AVAILABLE


def test_at_most_so_many_records_are_in_flight() -> None:
    bench = Bench([10] * 5, ShareLimits(partition_max_record_locks=20))
    assert spans(bench.acquire()) == [(0, 9, 1), (10, 19, 1)]
    assert not bench.share.can_acquire() and bench.acquire() == []
    bench.acknowledge("a", (0, 9, [RELEASE]))
    assert bench.share.can_acquire()
    assert spans(bench.acquire("b")) == [(0, 9, 2)]


def test_by_records_a_member_gets_no_more_than_it_asks_for__kip1206() -> None:
    bench = Bench([10])
    assert spans(bench.acquire(most=3, is_record_limit=True)) == [(0, 2, 1)]
    assert spans(bench.acquire("b", most=3, is_record_limit=True)) == [(3, 5, 1)]
    assert spans(bench.acquire("c", most=30, is_record_limit=True)) == [(6, 9, 1)]


def test_a_record_of_many_deliveries_comes_in_smaller_company() -> None:
    bench = Bench([8])
    sizes = []
    for _ in range(4):
        acquired = bench.acquire()
        sizes.append(sum(one.size for one in acquired))
        bench.acknowledge("a", *((one.first_offset, one.last_offset, [RELEASE]) for one in acquired))
    assert sizes == [8, 8, 8, 4]


def test_what_was_aborted_is_not_delivered() -> None:
    bench = Bench([3])
    bench.log += [
        ReadBatch(3, 5, 7, True),
        ReadBatch(6, 7, 8, True),
        ReadBatch(8, 8, 7, True, True),
        ReadBatch(9, 9, 7, True),
    ]
    assert spans(bench.acquire(aborted=[(7, 3)])) == [(0, 2, 1), (6, 9, 1)]
    bench.acknowledge("a", (0, 2, [ACCEPT]), (6, 9, [ACCEPT]))
    assert bench.share.start_offset == 10


def test_records_between_those_that_are_kept_are_read_after_a_restart() -> None:
    bench = Bench([5, 5, 5])
    for member, most in (("a", 5), ("b", 5), ("c", 5)):
        bench.acquire(member, most)
    bench.acknowledge("b", (5, 9, [ACCEPT]))
    bench.acknowledge("c", (10, 14, [RELEASE]))
    bench.reload()
    assert bench.share.next_fetch_offset() == 0
    assert spans(bench.acquire("d", most=5)) == [(0, 4, 1)]
    assert spans(bench.acquire("d")) == [(10, 14, 2)]
    bench.acknowledge("d", (0, 4, [ACCEPT]), (10, 14, [ACCEPT]))
    assert bench.share.start_offset == 15


def test_a_gap_that_is_all_a_member_asks_for_is_all_it_gets() -> None:
    bench = Bench([5, 5])
    bench.acquire("a", 5)
    bench.acquire("b", 5)
    bench.acknowledge("b", (5, 9, [RELEASE]))
    bench.reload()
    assert spans(bench.acquire("c", most=5)) == [(0, 4, 1)]
    assert spans(bench.acquire("c", most=5)) == [(5, 9, 2)]


def test_what_is_gone_from_the_log_is_delivered_no_more() -> None:
    bench = Bench([5, 5])
    bench.acquire()
    bench.acknowledge("a", (0, 4, [RELEASE]))
    bench.share.log_start_moved(3)
    assert spans(bench.acquire("b")) == [(3, 4, 2)]
    assert bench.acknowledge("b", (0, 4, [ACCEPT])) == [0]
    assert bench.share.start_offset == 5


def test_what_is_released_while_it_is_deleted_is_not_sought() -> None:
    for error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        bench = Bench([5])
        bench.acquire()
        bench.waits = True
        bench.acknowledge("a", (0, 4, [RELEASE]))
        bench.share.log_start_moved(3)
        bench.wait(LOCK_MS)
        bench.waits, bench.error = False, error
        bench.tell()
        assert bench.share.next_fetch_offset() == 3, error.name
        assert spans(bench.acquire("b")) == [(3, 4, 2)], error.name


def test_with_all_locks_taken_what_compaction_has_left_behind_them_is_not_acquired() -> None:
    bench = Bench([5, 5, 5], ShareLimits(partition_max_record_locks=10))
    bench.acquire(most=10)
    bench.acknowledge("a", (5, 9, [RELEASE]))
    del bench.log[1]
    assert spans(bench.acquire("b")) == []
    assert (bench.share.end_offset, bench.share.next_fetch_offset()) == (9, 10)


def test_what_compaction_has_removed_is_delivered_no_more() -> None:
    bench = Bench([5, 5])
    bench.acquire(batch_size=5)
    bench.acknowledge("a", (0, 9, [RELEASE]))
    del bench.log[0]
    assert spans(bench.acquire("b")) == [(5, 9, 2)]
    assert bench.acknowledge("b", (5, 9, [ACCEPT])) == [0]
    assert (bench.share.start_offset, bench.share.complete_count) == (10, 0)


def test_what_is_deleted_below_the_start_does_not_count_as_done() -> None:
    bench = Bench([5, 5])
    bench.acquire()
    bench.acknowledge("a", (0, 9, [RELEASE]))
    bench.share.log_start_moved(5)
    assert (bench.share.start_offset, bench.share.complete_count) == (5, 0)


def test_records_are_acquired_in_batches_that_end_where_the_logs_do() -> None:
    assert spans(Bench([5, 5, 5]).acquire(batch_size=5)) == [(0, 4, 1), (5, 9, 1), (10, 14, 1)]
    assert spans(Bench([5, 5, 5]).acquire(batch_size=4)) == [(0, 4, 1), (5, 9, 1), (10, 14, 1)]
    assert spans(Bench([5, 5, 5]).acquire(batch_size=6)) == [(0, 9, 1), (10, 14, 1)]
    assert spans(Bench([5, 5, 5]).acquire(batch_size=14)) == [(0, 14, 1)]
    assert spans(Bench([5, 1]).acquire(batch_size=5)) == [(0, 4, 1), (5, 5, 1)]
    assert spans(Bench([5, 5, 5]).acquire(most=5)) == [(0, 4, 1)]
    assert spans(Bench([5, 5, 5]).acquire(most=6)) == [(0, 9, 1)]


def test_released_batches_are_acquired_until_there_are_enough() -> None:
    bench = Bench([2, 2, 2, 2])
    bench.acquire(batch_size=2)
    bench.acknowledge("a", *((first, first + 1, [RELEASE]) for first in (0, 2, 4, 6)))
    assert spans(bench.acquire("b", most=5)) == [(0, 1, 2), (2, 3, 2), (4, 5, 2)]
    assert spans(bench.acquire("c", most=2)) == [(6, 7, 2)]
    bench.acknowledge("b", (0, 1, [RELEASE]), (2, 3, [RELEASE]))
    assert spans(bench.acquire("c", most=2)) == [(0, 1, 3)]


def test_single_records_of_a_batch_come_with_the_batches_behind_it() -> None:
    bench = Bench([4, 4])
    bench.acquire(batch_size=4)
    bench.acknowledge("a", (1, 2, [RELEASE]), (4, 7, [RELEASE]))
    assert spans(bench.acquire("b")) == [(1, 2, 2), (4, 7, 2)]


def test_with_all_locks_taken_what_is_released_at_the_end_is_acquired() -> None:
    bench = Bench([5, 5], ShareLimits(partition_max_record_locks=5))
    bench.acquire(most=5)
    bench.acknowledge("a", (4, 4, [RELEASE]))
    assert spans(bench.acquire("b")) == [(4, 4, 2)]


def test_a_batch_that_is_acknowledged_whole_is_one_change() -> None:
    bench = Bench([5, 5])
    bench.acquire(batch_size=5)
    bench.waits = True
    bench.acknowledge("a", (0, 4, [ACCEPT]))
    assert bench.writes[0].changes == (Change(0, 4, ACKNOWLEDGED, 1),)


def test_batches_that_are_done_are_kept_no_longer() -> None:
    bench = Bench([5, 5])
    bench.acquire(batch_size=5)
    bench.acknowledge("a", (0, 4, [ACCEPT]))
    assert [batch.first_offset for batch in bench.share.in_flight] == [5]
    assert (bench.share.start_offset, bench.share.complete_count) == (5, 0)


def test_expired_records_are_counted_each() -> None:
    bench = Bench([5, 5])
    bench.acquire(batch_size=5)
    bench.acknowledge("a", (5, 6, [ACCEPT]))
    bench.wait(LOCK_MS)
    assert bench.share.expired_count == 5 + 3


def test_a_session_that_ends_lets_its_records_go() -> None:
    bench = Bench([5, 5])
    bench.acquire("a", 5)
    bench.acquire("b", 5)
    answers: list[ErrorCode] = []
    release_all(bench.share, "a", bench.now_ms, answers.append)
    bench.tell()
    assert answers == [0]
    assert spans(bench.acquire("c")) == [(0, 4, 2)]


# Random members beside a model with one entry an offset


class ShareMachine(RuleBasedStateMachine):
    """Members that get, acknowledge, renew, forget; a coordinator that waits or fails; other leaders."""

    def __init__(self) -> None:
        super().__init__()
        limits = ShareLimits(
            delivery_count_limit=4, partition_max_record_locks=30, record_lock_duration_ms=LOCK_MS
        )
        self.bench = Bench([2, 3], limits)
        self.holders: dict[int, tuple[str, int]] = {}  # member and until when, by offset
        self.counts: dict[int, int] = {}
        self.done: set[int] = set()  # accepted or rejected, and the coordinator knows
        self.unsure: set[int] = set()  # whose acknowledgement is not answered
        self.log_start = 0

    @rule(size=st.integers(1, 6))
    def produce(self, size: int) -> None:
        if self.bench.end < 60:
            self.bench.append(size)

    @rule(member=st.sampled_from("ab"), most=st.integers(1, 12), by_record=st.booleans())
    def fetch(self, member: str, most: int, by_record: bool) -> None:
        self.take(self.bench.acquire(member, most, is_record_limit=by_record, batch_size=3), member)

    def take(self, acquired: list[Acquired], member: str) -> None:
        for one in acquired:
            for offset in range(one.first_offset, one.last_offset + 1):
                assert offset not in self.done, f"{offset} is delivered again"
                assert offset not in self.unsure, f"{offset} is delivered while it is acknowledged"
                # A batch in which the log starts is read whole, and as in Kafka all of it may be delivered.
                assert offset >= self.bench.log[0].base_offset, f"{offset} is not in the log"
                holder = self.holders.get(offset)
                assert holder is None or holder[1] <= self.bench.now_ms, f"{offset} is held by {holder}"
                assert one.delivery_count <= 4
                assert one.delivery_count > self.counts.get(offset, 0)
                self.counts[offset] = one.delivery_count
                self.holders[offset] = member, self.bench.now_ms + LOCK_MS

    def held(self, member: str) -> list[int]:
        return [
            offset
            for offset, (holder, until_ms) in sorted(self.holders.items())
            if holder == member and until_ms > self.bench.now_ms and offset >= self.bench.share.start_offset
        ]

    def holding(self) -> list[str]:
        """The members that hold what they have not acknowledged."""
        return [member for member in "ab" if set(self.held(member)) - self.unsure]

    @precondition(lambda self: self.holding())
    @rule(data=st.data(), fails=st.booleans())
    def acknowledge(self, data: Any, fails: bool) -> None:
        member = data.draw(st.sampled_from(self.holding()))
        held = [offset for offset in self.held(member) if offset not in self.unsure]
        offsets = data.draw(st.lists(st.sampled_from(held), min_size=1, unique=True).map(sorted))
        type = data.draw(st.sampled_from([ACCEPT, ACCEPT, RELEASE, REJECT, RENEW]))
        self.bench.error = ErrorCode.NETWORK_EXCEPTION if fails else ErrorCode.NONE
        answers = self.bench.acknowledge(member, *((one, one, [type]) for one in offsets))
        if type == RENEW:
            assert answers == [0]
            self.holders |= dict.fromkeys(offsets, (member, self.bench.now_ms + LOCK_MS))
        elif not answers:
            self.unsure |= set(offsets)
            self.waiting.append((answers, offsets, type))
        else:
            self.answered(answers, offsets, type)

    @property
    def waiting(self) -> list[Any]:
        return self.__dict__.setdefault("_waiting", [])  # type: ignore[no-any-return]

    def answered(self, answers: list[ErrorCode], offsets: list[int], type: int) -> None:
        self.unsure -= set(offsets)
        if answers == [0]:
            for offset in offsets:
                self.holders.pop(offset, None)
            if type != RELEASE:
                self.done |= set(offsets)

    @rule(waits=st.booleans())
    def coordinator(self, waits: bool) -> None:
        self.bench.waits = waits
        self.bench.tell()
        left = []
        for answers, offsets, type in self.waiting:
            if answers:
                self.answered(answers, offsets, type)
            else:
                left.append((answers, offsets, type))
        self.waiting[:] = left

    @rule(member=st.sampled_from("ab"))
    def leave(self, member: str) -> None:
        self.bench.error = ErrorCode.NONE
        if not self.bench.waits:
            release_all(self.bench.share, member, self.bench.now_ms, lambda error: None)
            self.bench.tell()
            for offset in self.held(member):
                if offset not in self.unsure:
                    self.holders.pop(offset)

    @rule(time_ms=st.sampled_from([1, LOCK_MS // 2, LOCK_MS]))
    def time(self, time_ms: int) -> None:
        self.bench.wait(time_ms)

    @rule(offset=st.integers(0, 60))
    def delete_records(self, offset: int) -> None:
        if self.log_start < offset <= self.bench.end and offset - self.log_start < 10:
            self.log_start = offset
            self.bench.log = [batch for batch in self.bench.log if batch.last_offset >= offset]
            self.bench.share.log_start_moved(offset)

    @rule()
    def restart(self) -> None:
        if self.bench.end > self.log_start:
            self.bench.reload()
            if self.log_start > self.bench.share.start_offset:
                self.bench.share.log_start_moved(self.log_start)
            self.holders.clear()
            self.unsure.clear()
            self.waiting.clear()
            kept = {
                offset: row.delivery_count
                for row in self.bench.kept
                for offset in range(row.first_offset, row.last_offset + 1)
            }
            self.counts = {offset: kept.get(offset, 0) for offset in self.counts}

    @invariant()
    def what_is_done_before_the_start_is_counted(self) -> None:
        share = self.bench.share
        states = [
            (first, last, delivery.state)
            for batch in share.in_flight
            for first, last, delivery in batch.parts()
        ]
        for (_, last, _), (first, _, _) in pairwise(states):
            assert last < first
        terminal = sum(
            max(0, last - max(first, share.start_offset) + 1)
            for first, last, state in states
            if state in (ACKNOWLEDGED, ARCHIVED)
        )
        assert share.complete_count == terminal
        assert share.complete_count <= max(0, share.end_offset - share.start_offset + 1)

    def teardown(self) -> None:
        """Each record is accepted, rejected, delivered too often, or gone from the log."""
        self.coordinator(waits=False)
        self.bench.error = ErrorCode.NONE
        for _ in range(400):
            self.bench.wait(LOCK_MS)
            acquired = self.bench.acquire("z")
            if not acquired and self.bench.share.next_fetch_offset() >= self.bench.end:
                break
            self.take(acquired, "z")
            rows = [(one.first_offset, one.last_offset, [ACCEPT]) for one in acquired]
            assert self.bench.acknowledge("z", *rows) == [0]
            for first, last, _ in rows:
                self.done |= set(range(first, last + 1))
        else:
            raise AssertionError(f"{self.bench.share!r} does not come to an end")
        for offset in range(self.log_start, self.bench.end):
            assert offset in self.done or self.counts.get(offset, 0) >= 4, f"{offset} was lost"


def run_machine(examples: int, *, derandomize: bool = False) -> None:
    run_state_machine_as_test(
        ShareMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            derandomize=derandomize,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_members_get_each_record_and_none_twice_at_once() -> None:
    run_machine(50)


def held_again(delivery: Delivery) -> bool:
    return delivery.state in (AVAILABLE, ACQUIRED) and delivery.former is None


def heedless(self: Delivery, is_written: bool) -> None:
    """A change counts, whatever the coordinator answers."""
    self.former, self.lock_ms = None, None


def no_lock_ends(self: SharePartition, now_ms: int) -> list[Any]:
    return []


DEFECTS: list[tuple[str, object, str, Callable[..., Any] | property]] = [
    ("held records are available", Delivery, "is_available", property(held_again)),
    ("failed writes count", Delivery, "settle", heedless),
    ("locks do not end", SharePartition, "take_expired", no_lock_ends),
    ("gaps are not read", SharePartition, "has_gap", property(lambda self: False)),
]


@pytest.mark.parametrize(
    ("where", "name", "defect"), [one[1:] for one in DEFECTS], ids=[d[0] for d in DEFECTS]
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, defect: object
) -> None:
    monkeypatch.setattr(where, name, defect)
    with pytest.raises(AssertionError):
        run_machine(800, derandomize=True)
