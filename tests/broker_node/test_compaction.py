"""A broker cleans its compacted topics by schedule and by their configs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd.broker_node.effects import OfPartition
from kraftd.controller.configs.resources import ResourceType
from kraftd.host.broker_logs import log_cleaning
from kraftd.log.offset_checkpoint import decode_offsets
from kraftd.log_dirs.cleaner import LEAST_IO_BYTES, CleanerSettings
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.partition.effects import TruncateLog
from kraftd.wire import batch as batches
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.records import build_records_batch
from tests.broker_node.harness import SCHEDULES, BrokerHarness
from tests.controller_node.harness import START_MS

BACKOFF_MS = CleanerSettings().log_cleaner_backoff_ms
KEY = ("table", 0)


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("table", cleanup_policy="compact", segment_ms="1000")
    return harness


def put(harness: BrokerHarness, key: bytes, value: bytes | None, age_ms: int = 0) -> None:
    """A record in a segment of its own: by its time the one before is full."""
    at_ms = harness.clock.ms - age_ms
    harness.produce("table", build_records_batch([(at_ms, key, value, ())]))
    harness.pass_time(1_100)


def alter(harness: BrokerHarness, key: str, value: str) -> None:
    change = AlterConfigsResource(ResourceType.TOPIC, "table", [AlterableConfig(key, 0, value)])
    answer = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change]), 9)
    assert not answer.responses[0].error_code
    harness.pass_time(10)


def rows(harness: BrokerHarness) -> list[tuple[int, bytes, bytes]]:
    found: list[tuple[int, bytes, bytes]] = []
    offset = 0
    while data := harness.read("table", offset).records:
        for batch in iter_batches(data):
            found += (
                (one.offset, bytes(one.key or b""), bytes(one.value or b"")) for one in batches.records(batch)
            )
            offset = batch.header.next_offset
    return found


def cleaned_to(harness: BrokerHarness) -> dict[tuple[str, int], int]:
    log = harness.directories.logs[KEY]
    path = f"{log.parent}/cleaner-offset-checkpoint"
    return decode_offsets(harness.disk.read_bytes(path)) if harness.disk.exists(path) else {}


def test_a_dirty_log_is_cleaned_after_the_backoff_and_has_a_checkpoint(
    harness: BrokerHarness,
) -> None:
    for number in range(6):
        put(harness, b"k%d" % (number % 2), b"%d" % number)
    assert len(rows(harness)) == 6
    harness.pass_time(BACKOFF_MS)
    assert rows(harness) == [(3, b"k1", b"3"), (4, b"k0", b"4"), (5, b"k1", b"5")]
    assert cleaned_to(harness) == {KEY: 5}
    put(harness, b"k0", b"6")
    harness.pass_time(BACKOFF_MS)
    assert len(rows(harness)) == 4  # a quarter is dirty: less than min.cleanable.dirty.ratio


def test_buffers_of_the_cleaner_follow_their_config_and_take_any_batch__kip226(
    harness: BrokerHarness,
) -> None:
    settings = harness.executor.cleaning.cleaner.settings
    assert settings.io_bytes == 256 << 10
    harness.set_broker_config("log.cleaner.io.buffer.size", "0")
    settings = harness.executor.cleaning.cleaner.settings
    assert (settings.log_cleaner_io_buffer_size, settings.io_bytes) == (0, LEAST_IO_BYTES)
    long = b"v" * (3 * LEAST_IO_BYTES)
    for number in range(6):
        put(harness, b"k%d" % (number % 2), long)
    harness.pass_time(BACKOFF_MS)
    assert [offset for offset, _, value in rows(harness) if value == long] == [3, 4, 5]


def test_all_dirty_logs_are_cleaned_one_after_the_other(harness: BrokerHarness) -> None:
    topics = ("one", "two", "three")
    for topic in topics:
        harness.create_topic(topic, cleanup_policy="compact", segment_ms="1000")
    harness.pass_time(BACKOFF_MS - harness.clock.ms % BACKOFF_MS)
    for number in range(4):
        for topic in topics:
            at_ms = harness.clock.ms
            harness.produce(topic, build_records_batch([(at_ms, b"k", b"%d" % number, ())]))
        harness.pass_time(1_100)
    harness.pass_time(BACKOFF_MS)
    logs = harness.directories.logs
    assert [len(logs[topic, 0].segments) for topic in topics] == [2, 2, 2]


def test_a_topic_that_is_deleted_and_made_again_is_cleaned_anew(harness: BrokerHarness) -> None:
    for number in range(4):
        put(harness, b"k", b"%d" % number)
    harness.pass_time(BACKOFF_MS)
    assert cleaned_to(harness) == {KEY: 3}
    harness.delete_topic("table")
    harness.create_topic("table", cleanup_policy="compact", segment_ms="1000")
    for number in range(3):
        put(harness, b"k", b"%d" % number)
    harness.pass_time(BACKOFF_MS)
    assert [offset for offset, _, _ in rows(harness)] == [1, 2]


def test_a_cleaning_ends_when_the_topic_is_not_compacted_any_more(harness: BrokerHarness) -> None:
    """As in Kafka: after the change no record goes because of its key."""
    for number in range(4):
        put(harness, b"k", b"%d" % number)
    harness.threads.held = held = list[Callable[[], None]]()
    harness.pass_time(BACKOFF_MS)
    held.pop()()  # the keys are noted
    harness.timer.run_soon()
    write_group = held.pop()
    alter(harness, "cleanup.policy", "delete")
    write_group()
    harness.threads.held = None
    harness.timer.run_soon()
    assert [offset for offset, _, _ in rows(harness)] == [0, 1, 2, 3]
    assert cleaned_to(harness) == {} and not harness.executor.cleaning.cleaner.uncleanable
    alter(harness, "cleanup.policy", "compact")
    harness.pass_time(BACKOFF_MS)
    assert [offset for offset, _, _ in rows(harness)] == [2, 3]


def test_what_follows_a_truncation_counts_as_dirty_again(harness: BrokerHarness) -> None:
    for number in range(6):
        put(harness, b"k", b"%d" % number)
    harness.pass_time(BACKOFF_MS)
    assert cleaned_to(harness) == {KEY: 5}
    harness.executor.performers[OfPartition](OfPartition("table", 0, TruncateLog(4)))
    harness.pass_time(10)
    assert cleaned_to(harness) == {KEY: 4}


def test_a_log_with_damage_is_set_aside_and_named(harness: BrokerHarness) -> None:
    for number in range(6):
        put(harness, b"k", b"%d" % number)
    log = harness.directories.logs[KEY]
    log.flush(START_MS, whole=True)
    path = log.segments[1].path(log.directory)
    harness.disk.flip_bit(path, 65, 1)
    harness.pass_time(2 * BACKOFF_MS)
    cleaner = harness.executor.cleaning.cleaner
    assert path in cleaner.uncleanable[KEY].reason
    assert "Restore" not in cleaner.uncleanable[KEY].reason  # where it is shown, advice stands beside it
    assert len(log.segments) == 6


def test_a_log_that_cannot_be_judged_keeps_no_other_from_being_cleaned(harness: BrokerHarness) -> None:
    harness.create_topic("other", cleanup_policy="compact", segment_ms="1000")
    harness.pass_time(BACKOFF_MS - harness.clock.ms % BACKOFF_MS)
    for number in range(4):
        put(harness, b"k", b"%d" % number)
        harness.produce("other", build_records_batch([(harness.clock.ms, b"k", b"%d" % number, ())]))
    logs = harness.directories.logs
    damaged, sound = logs[KEY], logs["other", 0]
    segment = damaged.segments[1]
    segment._first_timestamp_ms = None  # as after a start, which reads no closed segment
    harness.disk.flip_bit(segment.path(damaged.directory), 16, 1)
    harness.pass_time(2 * BACKOFF_MS)
    cleaner = harness.executor.cleaning.cleaner
    assert list(cleaner.uncleanable) == [KEY]
    assert len(sound.segments) < 4 == len(damaged.segments)
    harness.delete_topic("table")
    assert cleaner.uncleanable == {}


def test_compacted_logs_are_shortened_by_the_cleaner_and_not_once_set_aside(tmp_path: Path) -> None:
    """Neither waits for log.retention.check.interval.ms."""
    harness = BrokerHarness(tmp_path).run()
    changes = {"cleanup_policy": "compact,delete", "segment_ms": "1000", "retention_ms": "1000"}
    for topic in ("table", "damaged"):
        harness.create_topic(topic, **changes)
    logs = harness.directories.logs
    for number in range(3):
        harness.produce("damaged", build_records_batch([(harness.clock.ms, b"k", b"%d" % number, ())]))
        put(harness, b"k", b"%d" % number)
    harness.executor.cleaning.cleaner.set_aside(("damaged", 0), "for this test", 0)
    assert logs[KEY].log_start == logs["damaged", 0].log_start == 0
    harness.pass_time(BACKOFF_MS)
    assert harness.clock.ms - START_MS < SCHEDULES.log_initial_task_delay_ms
    assert logs[KEY].log_start == 3
    harness.pass_time(SCHEDULES.log_initial_task_delay_ms + SCHEDULES.log_retention_check_interval_ms)
    assert logs["damaged", 0].log_start == 0


def test_a_look_asks_retention_of_compacted_logs_alone(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 15 s of very many partitions: what is asked of each costs an idle broker."""
    harness.create_topic("plain", 9)
    harness.pass_time(10)
    cleaning = harness.executor.cleaning
    asked: list[object] = []
    monkeypatch.setattr(cleaning, "_may_expire", lambda key: asked.append(key))
    monkeypatch.setattr(log_cleaning, "LOGS_ASKED_AT_ONCE", 3)
    assert len(list(cleaning.look())) >= 3, "in slices"
    assert asked == [KEY]
