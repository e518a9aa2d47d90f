"""Groups of a broker: what they have committed outlives a restart of the process, and goes with its topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.effects import ReadPartition
from kraftd.ground.java_hashes import partition_for
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListGroupsResponse
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.compression import CODEC_NAMES
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness


def commit(harness: BrokerHarness, offset: int) -> Any:
    part = OffsetCommitRequestPartition(0, offset, committed_metadata="")
    request = OffsetCommitRequest("g", -1, "", topics=[OffsetCommitRequestTopic("t", partitions=[part])])
    return harness.client_ask(ApiKey.OFFSET_COMMIT, 8, request).topics[0].partitions[0].error_code


def committed(harness: BrokerHarness) -> tuple[int, int]:
    request = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", (0,))])
    answer = harness.client_ask(ApiKey.OFFSET_FETCH, 7, request)
    if answer.error_code:
        return answer.error_code, -1
    return 0, answer.topics[0].partitions[0].committed_offset


@pytest.mark.parametrize("codec", range(5))
def test_committed_offsets_are_loaded_after_a_restart(tmp_path: Path, codec: int) -> None:
    before = BrokerHarness(tmp_path, broker={"offsets.topic.compression.codec": str(codec)}).run()
    before.create_topic("t")
    before.create_topic("__consumer_offsets", 3, cleanup_policy="compact")
    before.pass_time(100)
    assert commit(before, 5) == 0 and commit(before, 9) == 0
    batches = iter_batches(before.read("__consumer_offsets", index=partition_for("g", 3)).records)
    assert {one.header.compression for one in batches} == {CODEC_NAMES[codec]}
    before.executor.close_files()
    before.disk.locked.clear()
    after = BrokerHarness(tmp_path, before.disk)
    after.clock.ms = before.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert committed(after) == (0, 9)
    assert commit(after, 10) == 0 and committed(after) == (0, 10)


@pytest.mark.parametrize(
    ("count", "limit", "codec", "error"),
    [
        (190, 1_048_588, 0, ErrorCode.UNKNOWN_SERVER_ERROR),
        (190, 2_000_000, 0, ErrorCode.NONE),
        (5, 10_000, 0, ErrorCode.UNKNOWN_SERVER_ERROR),
        (5, 10_000, 1, ErrorCode.NONE),  # compressed, they are smaller
    ],
)
def test_the_topic_limits_what_is_written_together(
    tmp_path: Path, count: int, limit: int, codec: int, error: ErrorCode
) -> None:
    settings = {"offset.metadata.max.bytes": "8000", "offsets.topic.compression.codec": str(codec)}
    harness = BrokerHarness(tmp_path, broker=settings).run()
    harness.create_topic("t", count)
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact", max_message_bytes=str(limit))
    harness.pass_time(100)
    parts = [OffsetCommitRequestPartition(index, 5, committed_metadata="x" * 6_000) for index in range(count)]
    request = OffsetCommitRequest("g", -1, "", topics=[OffsetCommitRequestTopic("t", partitions=parts)])
    answer = harness.client_ask(ApiKey.OFFSET_COMMIT, 8, request)
    assert {row.error_code for row in answer.topics[0].partitions} == {error}


def test_no_coordinator_is_found_before_it_answers(tmp_path: Path) -> None:
    """The metadata name this broker before its log is open: until then a request gets NOT_COORDINATOR."""
    harness = BrokerHarness(tmp_path).run()
    found: list[int] = []

    def find() -> int:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        answer = harness.client_ask(ApiKey.FIND_COORDINATOR, 4, request)
        error: int = answer.coordinators[0].error_code
        return error

    step = harness.executor.step

    def watched(event: Any) -> None:
        step(event)
        if not found and "__consumer_offsets" in harness.view.image.topic_names():
            found.append(-1)
            found.append(find())

    harness.executor.step = watched  # type: ignore[method-assign]
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    assert found[1:] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (find(), committed(harness)[0]) == (0, 0)


def test_a_group_is_refused_while_its_partition_is_loaded(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    assert committed(harness)[0] == ErrorCode.NOT_COORDINATOR
    assert harness.client_ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()) == ListGroupsResponse()
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    assert commit(harness, 5) == 0
    harness.executor.close_files()
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    held: list[ReadPartition] = []
    read = after.executor.performers[ReadPartition]
    after.executor.performers[ReadPartition] = held.append
    after.run()
    after.pass_time(20_000)
    assert committed(after) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    for effect in held:
        read(effect)
    after.pass_time(1_000)
    assert committed(after) == (0, 5)


def test_offsets_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.create_topic("t")
    assert commit(harness, 5) == 0
    harness.delete_topic("t")
    harness.create_topic("t")
    assert committed(harness) == (0, -1)
    assert commit(harness, 7) == 0, "the new topic's offsets stay"
    harness.pass_time(1_000)
    assert committed(harness) == (0, 7)


def test_the_coordinator_follows_its_topic_and_the_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at an image once, and at every later one."""
    harness = BrokerHarness(tmp_path).run()
    coordination, coordinator = harness.broker.groups, harness.broker.groups.coordinator
    for count in (3, 5):
        harness.create_topic("__consumer_offsets", count, cleanup_policy="compact")
        harness.pass_time(100)
        coordination.follow_image()
        assert coordinator.partition_count == count
        harness.delete_topic("__consumer_offsets")
        harness.pass_time(100)
    assert coordinator.consumer.is_served()
    features_offset = harness.broker.view.finalized_features[1]
    changed = property(lambda view: ({}, features_offset + 1))
    monkeypatch.setattr(type(harness.broker.view), "finalized_features", changed)
    coordination.follow_image()
    assert not coordinator.consumer.is_served()
    looked: list[object] = []
    monkeypatch.setattr(coordination, "image_changed", lambda *seen: looked.append(seen))
    coordination.follow_image()
    assert looked == []
