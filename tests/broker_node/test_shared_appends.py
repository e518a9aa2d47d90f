"""What requests of several connections write into a coordinator's topic goes into its log together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.partition.effects import AppendBatches
from kraftd.requests.events import FramesReceived
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import encode_request
from tests.broker_node.harness import AT, BrokerHarness


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    found = BrokerHarness(tmp_path).run()
    found.create_topic("t")
    found.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    found.pass_time(100)
    return found


@pytest.fixture
def appended(harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics of the batches that are appended from now on."""
    topics: list[str] = []
    append = harness.broker.append

    def noted(hosted: Any, effect: AppendBatches) -> None:
        topics.append(hosted.topic)
        append(hosted, effect)

    monkeypatch.setattr(harness.broker, "append", noted)
    return topics


def commit(harness: BrokerHarness, connection_id: int) -> int:
    """A commit that arrives, while the loop's turn goes on; returns its slot."""
    part = OffsetCommitRequestPartition(0, connection_id, committed_metadata="")
    request = OffsetCommitRequest("g", -1, "", topics=[OffsetCommitRequestTopic("t", partitions=[part])])
    frame = b"".join(encode_request(ApiKey.OFFSET_COMMIT, 8, 1, "test", request))[4:]
    slot = len(harness.asked)
    harness.asked[slot] = (ApiKey.OFFSET_COMMIT, 8)
    event = FramesReceived(connection_id, slot, [memoryview(frame)], AT.listener, "127.0.0.1")
    harness.executor.step(event)
    return slot


def is_committed(harness: BrokerHarness, slot: int) -> bool:
    answer = harness.response(slot)
    return answer is not None and not answer.topics[0].partitions[0].error_code


def test_a_commit_that_comes_alone_does_not_wait(harness: BrokerHarness, appended: list[str]) -> None:
    for _ in range(3):
        assert is_committed(harness, commit(harness, 1))
        harness.pass_time(5)
    assert appended == ["__consumer_offsets"] * 3


def test_a_connection_that_asks_alone_does_not_wait(harness: BrokerHarness, appended: list[str]) -> None:
    for _ in range(3):
        assert is_committed(harness, commit(harness, 1))
    assert appended == ["__consumer_offsets"] * 3
    waiting = commit(harness, 2)
    assert harness.response(waiting) is None
    assert is_committed(harness, commit(harness, 2)) and is_committed(harness, waiting)
    assert len(appended) == 4


def test_commits_of_many_connections_are_appended_together(
    harness: BrokerHarness, appended: list[str]
) -> None:
    first, *others = [commit(harness, connection_id) for connection_id in range(1, 11)]
    assert is_committed(harness, first) and len(appended) == 1
    assert not any(harness.response(slot) for slot in others)
    harness.timer.run_soon()
    assert all(is_committed(harness, slot) for slot in others)
    assert appended == ["__consumer_offsets"] * 2


def test_another_event_appends_what_waits(harness: BrokerHarness, appended: list[str]) -> None:
    slots = [commit(harness, connection_id) for connection_id in (1, 2)]
    harness.executor.connection_lost(3)
    assert all(is_committed(harness, slot) for slot in slots)
    assert len(appended) == 2


def test_commits_behind_a_long_step_are_appended_together(
    harness: BrokerHarness, appended: list[str]
) -> None:
    first = commit(harness, 1)
    harness.clock.ms += 20
    harness.broker.took(20_000_000)
    others = [commit(harness, connection_id) for connection_id in (2, 3)]
    assert is_committed(harness, first) and len(appended) == 1
    assert not any(harness.response(slot) for slot in others)
    harness.timer.run_soon()
    assert all(is_committed(harness, slot) for slot in others)
    assert appended == ["__consumer_offsets"] * 2
