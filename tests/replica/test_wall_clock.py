"""A controller follows the wall clock in record timestamps and fetch times; its timeouts do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.raft.events import WallClockStepped
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from tests.controller_node.harness import Harness

HOUR_MS = 3_600_000
DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def last_stamp_ms(harness: Harness) -> int:
    log = harness.storage.log
    data = log.read(log.log_start, 1 << 20, log.log_end)
    return [batch.header.max_timestamp_ms for batch in iter_batches(data)][-1]


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS, 20])
def test_records_are_stamped_by_the_wall_clock_after_its_step(harness: Harness, ahead_ms: int) -> None:
    harness.register()
    assert last_stamp_ms(harness) == harness.clock.ms
    harness.step(WallClockStepped(ahead_ms))
    harness.register(2)
    assert last_stamp_ms(harness) == harness.clock.ms + ahead_ms
    assert harness.node.following.load_progress.timestamp_ms == harness.clock.ms + ahead_ms
    answer = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, DESCRIBE)
    leader = answer.topics[0].partitions[0].current_voters[0]
    assert leader.last_caught_up_timestamp == leader.last_fetch_timestamp == harness.clock.ms + ahead_ms


@pytest.mark.parametrize("ahead_ms", [24 * HOUR_MS, -24 * HOUR_MS])
def test_a_step_of_the_wall_clock_fences_no_broker_early_or_late(harness: Harness, ahead_ms: int) -> None:
    epoch = harness.register().broker_epoch
    harness.beat(1, epoch, current_metadata_offset=harness.node.core.high_watermark, want_fence=False)
    assert not harness.node.image.brokers[1].fenced
    due_ms = harness.node.deadline_ms()
    harness.step(WallClockStepped(ahead_ms))
    assert harness.node.deadline_ms() == due_ms
    harness.advance(8_900)
    assert not harness.node.image.brokers[1].fenced
    harness.advance(200)
    assert harness.node.image.brokers[1].fenced


def test_a_step_is_reported_once_it_amounts_to_a_second(harness: Harness) -> None:
    for ahead_ms, steps in ((600, 0), (1_200, 1), (1_300, 1), (-HOUR_MS, 2)):
        harness.step(WallClockStepped(ahead_ms))
        assert harness.node.wall_clock.steps == steps
    told = [event.fields for event in harness.audited if event.event == "wall clock stepped"]
    assert told == [
        {"by_ms": 1_200, "since_start_ms": 1_200},
        {"by_ms": -HOUR_MS - 1_200, "since_start_ms": -HOUR_MS},
    ]
    assert sum(text.startswith("the wall clock stepped") for text in harness.logged_texts) == 2
