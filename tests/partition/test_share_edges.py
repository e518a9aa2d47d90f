"""A share partition where spans touch: a moved log start, gaps, limits that are just reached (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftd.partition.share.acknowledging import expire, release_all
from kraftd.partition.share.acquiring import ReadRecords, acquire
from kraftd.partition.share.delivery import Delivery
from kraftd.partition.share.effects import Change, RecordsAvailable
from kraftd.partition.share.in_flight import InFlight, InFlightBatch
from kraftd.partition.share.share_partition import ShareLimits, SharePartition
from kraftd.partition.share.states import ACCEPT, ARCHIVED, AVAILABLE, REJECT, RELEASE, RENEW
from kraftd.wire.error_code import ErrorCode
from tests.partition.test_share_partition import LIMITS, LOCK_MS, Bench, spans


def held(*sizes: int, size: int = 1, member: str = "a") -> Bench:
    """A member holds all records, in batches of about so many."""
    bench = Bench(list(sizes))
    bench.acquire(member, 1000, batch_size=size)
    return bench


# The log start in a batch that is held


def let_go(bench: Bench) -> None:
    release_all(bench.share, "a", bench.now_ms, lambda error: None)
    bench.tell()


def run_out(bench: Bench) -> None:
    bench.wait(LOCK_MS)


def give_back(bench: Bench) -> None:
    bench.acknowledge("a", (0, 9, [RELEASE]))


@pytest.mark.parametrize("end", [let_go, run_out, give_back])
@pytest.mark.parametrize("log_start", [1, 9])
def test_of_a_batch_the_records_that_are_deleted_do_not_come_again(
    end: Callable[[Bench], None], log_start: int
) -> None:
    bench = held(10)
    bench.share.log_start_moved(log_start)
    end(bench)
    assert bench.share.next_fetch_offset() == log_start
    assert {row.delivery_state for row in bench.kept if row.first_offset >= log_start} == {AVAILABLE}
    acquired = bench.acquire("b")
    assert spans(acquired) == [(log_start, 9, 2)]
    assert [one.size for one in acquired] == [10 - log_start]


@pytest.mark.parametrize("end", [let_go, run_out, give_back])
@pytest.mark.parametrize("log_start", [1, 9])
def test_the_coordinator_is_given_the_records_before_and_after_a_log_start_apart(
    end: Callable[[Bench], None], log_start: int
) -> None:
    bench = held(10)
    bench.waits = True
    bench.share.log_start_moved(log_start)
    end(bench)
    changes = [Change(one, one, ARCHIVED if one < log_start else AVAILABLE, 1) for one in range(10)]
    assert list(bench.writes[0].changes) == (changes[log_start:] if end is give_back else changes)


def test_another_members_batch_is_left_whole_when_a_session_ends() -> None:
    bench = held(5, 5, size=5)
    bench.acknowledge("a", (0, 4, [RELEASE]))
    assert spans(bench.acquire("b", 5)) == [(0, 4, 2)]
    bench.share.log_start_moved(2)
    let_go(bench)
    assert bench.share.in_flight.first.whole is not None
    assert spans(bench.acquire("b")) == [(5, 9, 2)]


def test_what_is_acknowledged_from_before_the_start_on_counts_from_there() -> None:
    for last, size in ((5, 1), (9, 5)):
        bench = held(5, size, size=5)
        bench.acknowledge("a", (0, 4, [ACCEPT]))
        assert (bench.share.start_offset, bench.share.in_flight.first.first_offset) == (5, 5)
        assert bench.acknowledge("a", (3, last, [ACCEPT])) == [ErrorCode.NONE], last
        assert bench.share.start_offset == last + 1


def test_what_was_deleted_is_acknowledged_without_effect() -> None:
    bench = held(5, 5, size=5)
    bench.share.log_start_moved(5)
    assert bench.acknowledge("a", (0, 4, [REJECT])) == [ErrorCode.NONE]
    assert not bench.kept
    assert bench.acknowledge("a", (9, 12, [REJECT])) == [ErrorCode.INVALID_REQUEST]


def test_what_is_rejected_below_a_new_log_start_counts_no_more() -> None:
    bench = held(1, 1, 1, 1)
    bench.acknowledge("a", (2, 2, [REJECT]), (3, 3, [REJECT]))
    bench.share.log_start_moved(3)
    assert (bench.share.start_offset, bench.share.complete_count) == (3, 1)
    bench = held(5, 5, 5, size=5)
    bench.acknowledge("a", (5, 9, [REJECT]))
    bench.share.log_start_moved(7)
    assert (bench.share.start_offset, bench.share.complete_count) == (7, 3)


def test_a_batch_that_is_deleted_while_it_is_released_is_done() -> None:
    bench = held(5, 5, size=5)
    bench.waits = True
    bench.acknowledge("a", (0, 4, [RELEASE]))
    bench.acknowledge("a", (5, 9, [RELEASE]))
    bench.share.log_start_moved(5)
    bench.answer(bench.writes.pop(0), ErrorCode.REQUEST_TIMED_OUT)
    assert bench.share.in_flight.first.at(0).state is ARCHIVED
    bench.answer(bench.writes.pop(0), ErrorCode.NONE)
    assert [batch.first_offset for batch in bench.share.in_flight] == [5]
    assert bench.share.deadline_ms() is None


def test_the_log_start_may_move_into_a_gap() -> None:
    bench = held(5, 5, 5, size=5)
    bench.acknowledge("a", (10, 14, [RELEASE]))
    bench.reload()
    bench.share.log_start_moved(3)
    assert bench.share.next_fetch_offset() == 3
    assert spans(bench.acquire("b")) == [(3, 9, 1), (10, 14, 2)]


# Locks


def test_of_a_batch_only_the_record_whose_time_is_over_is_let_go() -> None:
    bench = held(3, size=3)
    bench.acknowledge("a", (0, 0, [ACCEPT]))
    for offset in (1, 2):
        bench.wait(LOCK_MS // 4)
        assert bench.acknowledge("a", (offset, offset, [RENEW])) == [ErrorCode.NONE]
    bench.wait(3 * LOCK_MS // 4)
    assert (bench.share.expired_count, bench.share.next_fetch_offset()) == (1, 1)
    assert spans(bench.acquire("b")) == [(1, 1, 2)]


def test_a_batch_that_was_renewed_whole_is_let_go_whole() -> None:
    bench = held(5, 5, size=5)
    bench.wait(LOCK_MS // 2)
    bench.acknowledge("a", (0, 4, [RENEW]))
    bench.acknowledge("a", (5, 9, [RENEW]))
    bench.waits = True
    bench.wait(LOCK_MS)
    assert bench.share.expired_count == 10
    assert [one.changes for one in bench.writes] == [(Change(0, 4, AVAILABLE, 1), Change(5, 9, AVAILABLE, 1))]


def test_without_renewal_a_lock_is_not_renewed() -> None:
    bench = Bench([2], ShareLimits(renew_acknowledge_enable=False))
    bench.acquire()
    assert bench.acknowledge("a", (0, 1, [RENEW])) == [ErrorCode.INVALID_RECORD_STATE]


def test_waiting_fetches_look_again_once_records_are_let_go() -> None:
    bench = held(2)
    expire(bench.share, bench.now_ms + LOCK_MS)
    write, *rest = bench.share.effects
    assert rest == [RecordsAvailable()]
    bench.share.effects.clear()
    bench.share.written(write.write_id, ErrorCode.NONE)  # type: ignore[attr-defined]
    assert bench.share.effects == [RecordsAvailable()]
    bench.share.effects.clear()
    expire(bench.share, bench.now_ms + LOCK_MS)
    assert not bench.share.effects


# Limits


def test_nothing_is_acquired_where_nothing_may_be() -> None:
    bench = Bench([5])
    bench.share.load(5, 1, [])
    assert bench.acquire(most=0) == []
    read = ReadRecords(member_id="a", fetch_offset=5, batches=bench.log, batch_size=1, max_records=9)
    assert acquire(bench.share, read, 0) == [], "all that was read is before the start"
    empty = ReadRecords(member_id="a", fetch_offset=5, batches=[], batch_size=1, max_records=9)
    assert acquire(bench.share, empty, 0) == []


def test_with_all_locks_taken_a_member_gets_no_more_than_what_was_read() -> None:
    bench = Bench([10], ShareLimits(partition_max_record_locks=10))
    bench.acquire()
    bench.acknowledge("a", (7, 9, [RELEASE]))
    read = ReadRecords(
        member_id="b", fetch_offset=7, batches=bench.log, batch_size=10, max_records=99, is_record_limit=True
    )
    bench.acknowledge("a", (3, 6, [RELEASE]))
    assert spans(acquire(bench.share, read, bench.now_ms)) == [(3, 5, 2)]


@pytest.mark.parametrize(
    ("limit", "sizes"), [(5, [8, 8, 8, 4, 1]), (10, [8, 8, 8, 8, 8, 4, 2, 1, 1, 1]), (2, [8, 8])]
)
def test_the_oftener_records_were_delivered_the_fewer_come_at_once(limit: int, sizes: list[int]) -> None:
    bench = Bench([8], ShareLimits(delivery_count_limit=limit))
    found = []
    for _ in sizes:
        acquired = bench.acquire()
        found.append(sum(one.size for one in acquired))
        bench.acknowledge("a", *((*one[:2], [RELEASE]) for one in acquired))
    assert found == sizes


def deliver_often(bench: Bench, offset: int) -> None:
    """The other record of its batch is accepted, and this one is delivered three times, and released."""
    other = offset ^ 1
    for member, one in sorted((("a", offset), ("b", other)), key=lambda row: row[1]):
        assert spans(bench.acquire(member, 1, is_record_limit=True)) == [(one, one, 1)]
    bench.acknowledge("b", (other, other, [ACCEPT]))
    bench.acknowledge("a", (offset, offset, [RELEASE]))
    for count in (2, 3):
        assert spans(bench.acquire("a", 1, is_record_limit=True)) == [(offset, offset, count)]
        if count < 3:
            bench.acknowledge("a", (offset, offset, [RELEASE]))


def test_a_record_of_many_deliveries_comes_without_the_batches_around_it() -> None:
    bench = Bench([2, 2])
    deliver_often(bench, 0)
    assert spans(bench.acquire("b")) == [(2, 3, 1)]
    bench.acknowledge("b", (2, 3, [RELEASE]))
    bench.acknowledge("a", (0, 0, [RELEASE]))
    assert spans(bench.acquire("c")) == [(0, 0, 4)]
    bench = Bench([2, 2])
    assert spans(bench.acquire("b", 2)) == [(0, 1, 1)]
    deliver_often(bench, 3)
    bench.acknowledge("a", (3, 3, [RELEASE]))
    bench.acknowledge("b", (0, 1, [RELEASE]))
    assert spans(bench.acquire("c")) == [(0, 1, 2)]
    assert spans(bench.acquire("c")) == [(3, 3, 4)]


def test_only_available_records_make_others_come_apart() -> None:
    bench = Bench([2, 2])
    for count in (1, 2, 3):
        assert spans(bench.acquire("a", 1, is_record_limit=True)) == [(0, 0, count)]
        if count == 1:
            assert spans(bench.acquire("b", 1, is_record_limit=True)) == [(1, 1, 1)]
        if count < 3:
            bench.acknowledge("a", (0, 0, [RELEASE]))
    bench.acknowledge("b", (1, 1, [RELEASE]))
    assert spans(bench.acquire("c")) == [(1, 1, 2), (2, 3, 1)]


def test_a_record_that_is_delivered_for_the_last_time_comes_alone() -> None:
    bench = held(8)
    for _ in range(3):
        bench.acknowledge("a", (0, 0, [RELEASE]))
        bench.acquire("a", 1, is_record_limit=True)
    bench.acknowledge("a", (0, 7, [RELEASE]))
    assert spans(bench.acquire("b")) == [(0, 0, 5)]
    assert spans(bench.acquire("b")) == [(1, 7, 2)]


# What is loaded, and kept


def test_batches_that_overlap_are_not_loaded() -> None:
    for first, last in ((4, 6), (6, 5)):
        with pytest.raises(ValueError, match=f"a batch of the offsets {first} to {last} after 4"):
            SharePartition(LIMITS, []).load(
                0, 1, [Change(0, 4, AVAILABLE, 1), Change(first, last, AVAILABLE, 1)]
            )


def test_batches_before_one_that_is_partly_done_are_dropped() -> None:
    bench = held(5, 5, size=5)
    bench.acknowledge("a", (0, 6, [ACCEPT]))
    assert [batch.first_offset for batch in bench.share.in_flight] == [5]
    assert (bench.share.start_offset, bench.share.complete_count) == (7, 0)


def test_nothing_is_kept_of_batches_that_are_cleared() -> None:
    batches = InFlight()
    for _ in range(2):
        batches.put(InFlightBatch(0, 4, Delivery(AVAILABLE, 1)))
        assert len(batches) == len(list(batches)) == 1
        batches.clear()
        assert not len(batches)
