"""Offsets of share groups are altered, and deleted with their groups or before (KIP-932)."""

from __future__ import annotations

from typing import Any

from kraftd.groups.events import PartitionResigned
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
from kraftd.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.share_group_state_partition_metadata_value import ShareGroupStatePartitionMetadataValue
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from tests.groups.share.members import ShareDesk, Sharer, desk_of, settle

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def alter(desk: ShareDesk, topics: dict[str, dict[int, int]]) -> Any:
    rows = [
        AlterShareGroupOffsetsRequestTopic(
            name, [AlterShareGroupOffsetsRequestPartition(*one) for one in offsets.items()]
        )
        for name, offsets in topics.items()
    ]
    return desk.ask(AlterShareGroupOffsetsRequest("g", rows), 0)


def altered(answer: Any) -> dict[str, dict[int, int]]:
    return {
        topic.topic_name: {row.partition_index: row.error_code for row in topic.partitions}
        for topic in answer.responses
    }


def delete(desk: ShareDesk, *topics: str) -> Any:
    rows = [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
    return desk.ask(DeleteShareGroupOffsetsRequest("g", rows), 0)


def deleted(answer: Any) -> dict[str, int]:
    return {topic.topic_name: topic.error_code for topic in answer.responses}


def noted(desk: ShareDesk) -> tuple[list[str], list[str], list[str]]:
    """The topics that are initializing, initialized and deleting, by the newest record."""
    values = [
        record.value
        for record in desk.records()
        if isinstance(record.value, ShareGroupStatePartitionMetadataValue)
    ]
    last = values[-1]
    lists = last.initializing_topics, last.initialized_topics, last.deleting_topics
    some = [[topic.topic_name for topic in topics] for topics in lists]
    return some[0], some[1], some[2]


def test_a_group_without_members_begins_at_altered_offsets__kip932() -> None:
    desk = desk_of(orders=2, audit=1)
    answer = alter(desk, {"nowhere": {0: 1}, "gone": {}, "orders": {0: 5, 1: 6, 7: 8}, "audit": {}})
    assert altered(answer) == {"nowhere": {0: UNKNOWN}, "orders": {0: 0, 1: 0, 7: UNKNOWN}, "audit": {}}
    ids = [topic.topic_id for topic in answer.responses]
    assert ids == [ZERO_UUID, desk.topics.topic_id("orders"), desk.topics.topic_id("audit")]
    assert noted(desk) == (["audit"], ["orders"], [])
    assert desk.describe().group_state == "Empty"
    one = Sharer(desk, "m1")
    one.join()
    settle(one)
    assert one.has == {"orders": [0, 1]}
    refused = alter(desk, {"orders": {0: 1}})
    assert (refused.error_code, refused.responses) == (ErrorCode.NON_EMPTY_GROUP, [])


def test_each_partition_has_the_error_of_its_share_coordinator() -> None:
    desk = desk_of(orders=2)
    desk.refusal = ErrorCode.NOT_COORDINATOR
    answer = alter(desk, {"orders": {0: 5, 9: 1}})
    assert altered(answer) == {"orders": {0: ErrorCode.NOT_COORDINATOR, 9: UNKNOWN}}
    assert noted(desk) == (["orders"], [], [])
    desk.refusal = ErrorCode.NONE
    assert altered(alter(desk, {"orders": {0: 5}})) == {"orders": {0: 0}}
    assert noted(desk) == ([], ["orders"], [])


def test_offsets_of_a_topic_are_deleted_and_those_of_no_use_refused__kip932() -> None:
    desk = desk_of(orders=2, audit=1)
    assert delete(desk, "orders").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    alter(desk, {"orders": {0: 5}})
    desk.refusal = ErrorCode.NOT_COORDINATOR
    assert deleted(delete(desk, "orders")) == {"orders": ErrorCode.NOT_COORDINATOR}
    assert noted(desk) == ([], [], ["orders"])
    desk.refusal = ErrorCode.NONE
    answer = delete(desk, "orders", "audit", "nowhere")
    assert deleted(answer) == {"orders": 0, "audit": UNKNOWN, "nowhere": UNKNOWN}
    assert answer.responses[1].error_message == "There is no offset information to delete."
    assert noted(desk) == ([], [], [])
    Sharer(desk, "m1").join()
    assert delete(desk, "orders").error_code == ErrorCode.NON_EMPTY_GROUP


def test_a_share_group_is_deleted_once_its_state_is() -> None:
    desk = desk_of(orders=2, audit=1)
    one = Sharer(desk, "m1", "orders", "audit")
    one.join()
    settle(one)
    results = desk.ask(DeleteGroupsRequest(("g", "none")), 2).results
    assert {row.group_id: row.error_code for row in results} == {
        "g": ErrorCode.NON_EMPTY_GROUP,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    desk.heartbeat("m1", -1)
    desk.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    (row,) = desk.ask(DeleteGroupsRequest(("g",)), 2).results
    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.describe().group_state == "Empty"
    desk.refusal = ErrorCode.NONE
    desk.is_silent = True
    number = desk.send(DeleteGroupsRequest(("g",)), 2)
    (asked,) = desk.asked
    request: Any = asked.request  # type: ignore[union-attr]
    assert isinstance(request, DeleteShareGroupStateRequest)
    assert sorted(len(topic.partitions) for topic in request.topics) == [1, 2]
    assert number not in desk.answers
    desk.answer_asked()
    assert [row.error_code for row in desk.answers[number].results] == [0]  # type: ignore[attr-defined]
    assert desk.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    desk.reload()
    assert desk.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_share_group_stays_while_its_end_cannot_be_written() -> None:
    desk = desk_of(orders=1)
    alter(desk, {"orders": {0: 5}})
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    (row,) = desk.ask(DeleteGroupsRequest(("g",)), 2).results
    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.asked == []
    desk.failure = None
    assert desk.describe().group_state == "Empty"


def test_a_late_answer_of_the_share_coordinator_changes_nothing() -> None:
    desk = desk_of(orders=1)
    desk.is_silent = True
    Sharer(desk, "m1").join()
    desk.heartbeat("m1", -1)
    (asked,) = desk.asked
    desk.asked = []
    desk.is_silent = False
    desk.ask(DeleteGroupsRequest(("g",)), 2)
    count = len(desk.records())
    desk.asked = [asked]
    desk.answer_asked()
    assert len(desk.records()) == count
    assert desk.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_late_refusal_of_what_is_forgotten_meanwhile_changes_nothing() -> None:
    desk = desk_of(orders=1)
    desk.is_silent = True
    Sharer(desk, "m1").join()
    desk.heartbeat("m1", -1)
    number = desk.send(DeleteGroupsRequest(("g",)), 2)
    begin, forget = desk.asked
    desk.refusal, desk.asked = ErrorCode.NOT_COORDINATOR, [begin]
    desk.answer_asked()
    assert noted(desk) == ([], [], ["orders"])
    desk.refusal, desk.asked = ErrorCode.NONE, [forget]
    desk.answer_asked()
    answer: Any = desk.answers[number]
    assert [row.error_code for row in answer.results] == [0]


def test_a_group_that_moved_while_its_state_was_deleted_stays() -> None:
    desk = desk_of(orders=1)
    alter(desk, {"orders": {0: 5}})
    desk.is_silent = True
    number = desk.send(DeleteGroupsRequest(("g",)), 2)
    desk.step(PartitionResigned(0))
    desk.answer_asked()
    (row,) = desk.answers[number].results  # type: ignore[attr-defined]
    assert row.error_code == ErrorCode.NOT_COORDINATOR


def test_what_no_share_coordinator_takes_is_an_unknown_error() -> None:
    """Kafka finds an empty group id, no partitions, or a negative one at the end of its way to the state."""
    desk = desk_of(orders=2)

    def describe(group_id: str, topic: str, *indexes: int) -> tuple[int, int]:
        rows = [DescribeShareGroupOffsetsRequestTopic(topic, indexes)]
        group = DescribeShareGroupOffsetsRequestGroup(group_id, rows)
        (row,) = desk.ask(DescribeShareGroupOffsetsRequest([group]), 1).groups
        return row.error_code, len(row.topics)

    assert describe("", "orders", 0) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert describe("g", "orders") == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert describe("g", "orders", 0, -1) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert describe("", "nowhere", -1) == (ErrorCode.NONE, 1)
    assert describe("g", "orders", 9) == (ErrorCode.NONE, 1)
    refused = alter(desk, {"orders": {0: 5, -1: 5}})
    assert (refused.error_code, refused.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert noted(desk) == (["orders"], [], [])
