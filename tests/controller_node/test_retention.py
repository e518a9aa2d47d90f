"""The times at which snapshots are due, and the snapshots that retention deletes."""

from __future__ import annotations

from kraftd.host.upkeep.retention import KeptSnapshot, RetentionRules, new_start
from kraftd.host.upkeep.snapshot_policy import AFTER_FAILURE_MS, SnapshotPolicy
from kraftd.types import OffsetAndEpoch

NOW_MS = 1_000_000
FAR = 1 << 60


def snapshots(*offsets: int, size_bytes: int = 100) -> list[KeptSnapshot]:
    """One snapshot per offset; its last record is 1000 - offset milliseconds old."""
    return [KeptSnapshot(OffsetAndEpoch(at, 1), size_bytes, NOW_MS - (1000 - at)) for at in offsets]


def start(
    rules: RetentionRules,
    kept: list[KeptSnapshot],
    log_start: int = 0,
    limit: int = FAR,
    live_end: int | None = None,
) -> int | None:
    """The new start of a log of 1000 bytes in which each offset takes a byte."""
    chosen = new_start(rules, kept, lambda offset: 1000 - offset, log_start, limit, NOW_MS, NOW_MS, live_end)
    return None if chosen is None else chosen.offset


def test_nothing_is_deleted_without_a_limit_or_with_one_snapshot() -> None:
    assert start(RetentionRules(), snapshots(10, 20)) is None
    assert start(RetentionRules(max_bytes=0, max_ms=0), snapshots(10)) is None


def test_by_size_the_oldest_are_deleted_until_the_rest_fits() -> None:
    kept = snapshots(100, 200, 300)
    assert start(RetentionRules(max_bytes=1300), kept) is None  # 1000 + 300
    assert start(RetentionRules(max_bytes=1299), kept) == 200  # 800 + 200
    assert start(RetentionRules(max_bytes=999), kept) == 300


def test_the_age_of_a_snapshot_is_that_of_its_last_record() -> None:
    kept = snapshots(100, 200, 300)
    assert start(RetentionRules(max_ms=900), kept) is None
    assert start(RetentionRules(max_ms=899), kept) == 200
    assert start(RetentionRules(max_ms=0), kept) == 300


def test_the_last_snapshot_is_never_deleted() -> None:
    assert start(RetentionRules(max_bytes=0, max_ms=0), snapshots(100, 200)) == 200


def test_a_followers_log_start_does_not_pass_its_leaders__kip630() -> None:
    kept = snapshots(100, 200, 300)
    rules = RetentionRules(max_bytes=0)
    assert start(rules, kept, limit=199) is None
    assert start(rules, kept, limit=200) == 200
    assert start(rules, kept, limit=-1) is None


def test_the_log_start_waits_for_the_slowest_live_replica__kip630() -> None:
    kept = snapshots(100, 200, 300)
    rules = RetentionRules(max_bytes=0)
    assert start(rules, kept, live_end=199) is None
    assert start(rules, kept, live_end=200) == 200
    assert start(rules, kept, live_end=299) == 200
    assert start(rules, kept, live_end=300) == 300
    assert start(rules, kept, live_end=-1) is None


def test_the_log_start_waits_at_most_the_configured_lag__kip630() -> None:
    kept = snapshots(100, 200, 300)  # of 800 and 700 ms ago
    assert start(RetentionRules(max_bytes=0, lag_max_ms=801), kept, live_end=0) is None
    assert start(RetentionRules(max_bytes=0, lag_max_ms=800), kept, live_end=0) == 200
    assert start(RetentionRules(max_bytes=0, lag_max_ms=700), kept, live_end=0) == 300


def test_a_snapshot_that_is_being_downloaded_is_kept() -> None:
    kept = snapshots(100, 200, 300)
    kept[1] = kept[1]._replace(last_read_ms=NOW_MS - 10)
    assert start(RetentionRules(max_bytes=0, after_read_ms=11), kept) == 200
    assert start(RetentionRules(max_bytes=0, after_read_ms=10), kept) == 300


def test_a_snapshot_is_due_by_bytes_or_time_and_later_after_a_failure() -> None:
    policy = SnapshotPolicy(1000, 60_000, NOW_MS)
    assert policy.reason(999, NOW_MS + 59_999) is None
    assert policy.reason(1000, NOW_MS) and policy.is_by_bytes(1000)
    assert policy.reason(0, NOW_MS + 60_000) and not policy.is_by_bytes(0)
    policy.failed(NOW_MS)
    assert policy.reason(1000, NOW_MS + AFTER_FAILURE_MS - 1) is None
    assert policy.reason(1000, NOW_MS + AFTER_FAILURE_MS)
    policy.taken(NOW_MS)
    assert policy.reason(0, NOW_MS + 59_999 + 0) is None


def test_an_interval_of_zero_is_never() -> None:
    assert SnapshotPolicy(1000, 0, NOW_MS).reason(0, NOW_MS * 1000) is None


def test_too_few_changes_postpone_a_snapshot_by_as_many_bytes_again() -> None:
    policy = SnapshotPolicy(1000, 0, NOW_MS)
    policy.put_off(1500)
    assert policy.reason(2499, NOW_MS) is None
    assert policy.reason(2500, NOW_MS)
    policy.taken(NOW_MS)
    assert policy.reason(1000, NOW_MS)
