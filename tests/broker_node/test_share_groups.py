"""Share groups of a broker that coordinates both groups and their state: members, progress, and the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.api import valid_versions
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.table import api_key
from tests.broker_node.harness import BrokerHarness, records


def broker(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 2)
    harness.create_topic("__share_group_state", 3)
    harness.create_topic("t", 2)
    harness.pass_time(10)
    return harness


def ask(harness: BrokerHarness, request: Any) -> Any:
    """Send a request in its newest version, and let some time pass for the answer."""
    key = api_key(request)
    slot = harness.client_send(key, valid_versions(key)[1], request)
    harness.pass_time(10)
    return harness.response(slot)


def heartbeat(harness: BrokerHarness, epoch: int, *topics: str) -> Any:
    return ask(harness, ShareGroupHeartbeatRequest("g", "m", epoch, None, topics or None))


def progress(harness: BrokerHarness, topics: dict[str, tuple[int, ...]] | None = None) -> Any:
    rows = (
        None
        if topics is None
        else [DescribeShareGroupOffsetsRequestTopic(name, some) for name, some in topics.items()]
    )
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("g", rows)])
    (group,) = ask(harness, request).groups
    assert group.error_code == 0
    return {
        topic.topic_name: [
            (row.partition_index, row.start_offset, row.lag, row.error_code) for row in topic.partitions
        ]
        for topic in group.topics
    }


def test_a_member_gets_partitions_and_its_group_its_progress__kip932(tmp_path: Path) -> None:
    harness = broker(tmp_path)
    harness.produce("t", records(5))
    joined = heartbeat(harness, 0, "t")
    assert (joined.error_code, joined.assignment.topic_partitions) == (0, [])
    harness.pass_time(1_000)
    answer = heartbeat(harness, joined.member_epoch)
    (topic,) = answer.assignment.topic_partitions
    assert sorted(topic.partitions) == [0, 1]
    assert progress(harness) == {"t": [(0, -1, -1, 0), (1, -1, -1, 0)]}
    assert heartbeat(harness, -1).error_code == 0
    rows = [AlterShareGroupOffsetsRequestPartition(index, index + 2) for index in (0, 1)]
    request = AlterShareGroupOffsetsRequest("g", [AlterShareGroupOffsetsRequestTopic("t", rows)])
    assert ask(harness, request).error_code == 0
    assert progress(harness) == {"t": [(0, 2, 3, 0), (1, 3, -3, 0)]}
    assert progress(harness, {"t": (0,), "none": (4,)}) == {"t": [(0, 2, 3, 0)], "none": [(4, -1, -1, 0)]}


def test_nothing_of_a_deleted_share_group_is_left(tmp_path: Path) -> None:
    harness = broker(tmp_path)
    heartbeat(harness, 0, "t")
    heartbeat(harness, -1)
    request = DeleteShareGroupOffsetsRequest("g", [DeleteShareGroupOffsetsRequestTopic("t")])
    (row,) = ask(harness, request).responses
    assert (row.topic_name, row.error_code) == ("t", 0)
    assert progress(harness) == {}
    heartbeat(harness, 0, "t")
    heartbeat(harness, -1)
    assert progress(harness) == {"t": [(0, -1, -1, 0), (1, -1, -1, 0)]}
    (deleted,) = ask(harness, DeleteGroupsRequest(("g",))).results
    assert deleted.error_code == 0
    states = harness.broker.coordinators.share_states.coordinator.shards.values()
    assert not any(shard.states for shard in states)
    assert heartbeat(harness, 5).error_code == ErrorCode.GROUP_ID_NOT_FOUND
