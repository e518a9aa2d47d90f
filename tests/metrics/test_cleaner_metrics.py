"""Kafka's metrics of the log cleaner."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.metrics.status_page.status import CleanerRow, status
from kraftd.wire.records import build_records_batch
from tests.broker_node.harness import PATHS, BrokerHarness
from tests.broker_node.test_compaction import BACKOFF_MS, KEY, harness, put
from tests.broker_node.test_log_moves import run_held
from tests.metrics.test_exposition import samples
from tests.metrics.watched import readings

__all__ = ["harness"]


def of(harness: BrokerHarness, name: str, **labels: str) -> float | None:
    found = readings(harness, clients=harness.broker, log_cleaner=harness.executor.cleaning.cleaner)
    return samples(found).get((f"kafka_log_LogCleaner{name}", tuple(labels.items())))


def row(harness: BrokerHarness) -> CleanerRow:
    """What the status page has of the cleaner."""
    found = readings(harness, clients=harness.broker, log_cleaner=harness.executor.cleaning.cleaner)
    shown = status(found, None).cleaner
    assert shown is not None
    return shown


def test_the_status_page_shows_what_the_cleaner_does(harness: BrokerHarness) -> None:
    for number in range(6):
        put(harness, b"k%d" % (number % 2), b"%d" % number)
    harness.threads.held = []
    harness.pass_time(BACKOFF_MS)
    assert (row(harness).cleans, row(harness).dirty_percent) == ("{}-{}".format(*KEY), 100)
    assert row(harness).written_bytes == 0
    while harness.threads.held:
        run_held(harness)
    assert row(harness).cleans is None
    assert 0 < row(harness).written_bytes < row(harness).read_bytes
    assert (row(harness).uncleanable, row(harness).overdue_ms) == (0, 0)


def test_a_cleaning_is_measured(harness: BrokerHarness) -> None:
    for number in range(6):
        put(harness, b"k%d" % (number % 2), b"%d" % number)
    assert of(harness, "Manager_max_dirty_percent") == 0
    assert of(harness, "_cleaner_recopy_percent") == of(harness, "_max_clean_time_secs") == 0
    one = len(build_records_batch([(0, b"k", b"0", ())]))
    harness.pass_time(BACKOFF_MS)
    stats = harness.executor.cleaning.cleaner.stats
    assert (stats.written_bytes, stats.copied_bytes) == (3 * (one + 1) - (one + 1), 5 * (one + 1))
    assert of(harness, "_cleaner_recopy_percent") == 40
    assert of(harness, "_max_compaction_delay_secs") == of(harness, "_DeadThreadCount") == 0
    assert stats.buffer_utilization == pytest.approx(2 * 24 / (128 << 20), rel=1e-3)
    assert (of(harness, "Manager_time_since_last_run_ms") or 0) < BACKOFF_MS
    put(harness, b"k0", b"6")
    harness.pass_time(BACKOFF_MS)
    assert of(harness, "Manager_max_dirty_percent") == 33
    assert of(harness, "_cleaner_recopy_percent") == 40  # of the last cleaning that ended


def test_an_overdue_log_shows_how_long_it_has_waited(harness: BrokerHarness) -> None:
    harness.create_topic("late", cleanup_policy="compact", segment_ms="1000", max_compaction_lag_ms="5000")
    harness.pass_time(BACKOFF_MS - harness.clock.ms % BACKOFF_MS)
    for _ in range(2):
        harness.produce("late", build_records_batch([(harness.clock.ms, b"k", b"v", ())]))
        harness.pass_time(1_100)
    harness.pass_time(BACKOFF_MS)
    assert (of(harness, "_max_compaction_delay_secs") or 0) >= (BACKOFF_MS - 5_000 - 2_200) // 1_000


def test_logs_that_cannot_be_cleaned_are_counted_by_directory(harness: BrokerHarness) -> None:
    for number in range(6):
        put(harness, b"k", b"%d" % number)
    log = harness.directories.logs[KEY]
    harness.disk.flip_bit(log.segments[1].path(log.directory), 65, 1)
    harness.pass_time(2 * BACKOFF_MS)
    dirty_bytes = sum(one.end_position for one in log.segments[:-1])
    for path in PATHS:
        is_here = path == log.parent
        assert of(harness, "Manager_uncleanable_partitions_count", logDirectory=path) == is_here
        assert of(harness, "Manager_uncleanable_bytes", logDirectory=path) == is_here * dirty_bytes
    put(harness, b"k", b"more")
    harness.pass_time(BACKOFF_MS)
    assert of(harness, "Manager_uncleanable_bytes", logDirectory=log.parent) > dirty_bytes  # type: ignore[operator]


def test_a_process_without_a_broker_has_none_of_these(tmp_path: Path) -> None:
    found = samples(readings(BrokerHarness(tmp_path).run()))
    assert not [name for name, _ in found if name.startswith("kafka_log_LogCleaner")]
