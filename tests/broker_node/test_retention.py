"""Retention follows the configs of topics: of those that nothing is written to, and after a restart."""

from __future__ import annotations

from pathlib import Path

from kraftd.controller.configs.resources import ResourceType
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import SCHEDULES, BrokerHarness, records

DAY_MS = 86_400_000


def write_segments(harness: BrokerHarness, topic: str, timestamp_ms: int) -> None:
    for _ in range(3):
        assert not harness.produce(topic, records(2, timestamp_ms=timestamp_ms)).error_code
        harness.pass_time(1_500)


def test_a_config_is_followed_though_nothing_is_appended_since_its_change(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", segment_ms="1000")
    write_segments(harness, "t", harness.clock.ms)
    change = AlterConfigsResource(ResourceType.TOPIC, "t", [AlterableConfig("retention.ms", 0, "1000")])
    answer = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change]), 9)
    assert not answer.responses[0].error_code
    harness.pass_time(SCHEDULES.log_retention_check_interval_ms + 1_000)
    assert harness.read("t").error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_start_looks_for_what_is_expired_after_its_delay_not_after_an_interval(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", segment_ms="1000", retention_ms="1000")
    write_segments(harness, "t", harness.clock.ms)
    assert not harness.read("t").error_code
    harness.pass_time(SCHEDULES.log_initial_task_delay_ms)
    assert harness.read("t").error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_is_deleted_by_defaults_after_a_restart(tmp_path: Path) -> None:
    """The logs are opened before the metadata is known that says how long to keep them."""
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", segment_ms="1000", retention_ms="-1")
    write_segments(harness, "t", harness.clock.ms - 30 * DAY_MS)
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms
    after.executor.start()
    after.pass_time(100)
    after.start()
    after.pass_time(SCHEDULES.log_retention_check_interval_ms + 1_000)
    assert after.directories.logs["t", 0].log_start == 0
    assert not after.read("t").error_code
