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


def test_a_negative_partition_is_found_after_the_group_has_noted_the_others() -> None:
    """Kafka finds it on its way to the share coordinators."""
    desk = desk_of(orders=2)
    refused = alter(desk, {"orders": {0: 5, -1: 5}})
    assert (refused.error_code, refused.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert refused.error_message == "A partition is negative."
    assert noted(desk) == (["orders"], [], [])


def begun(desk: ShareDesk) -> Any:
    """The request that share coordinators got last."""
    return desk.asked[-1].request  # type: ignore[union-attr]


def test_partitions_begin_at_their_offsets_in_the_groups_epoch__kip932() -> None:
    desk = desk_of(orders=2, audit=1)
    one = Sharer(desk, "m1")
    one.join()
    settle(one)
    desk.heartbeat("m1", -1)
    epoch = desk.describe().group_epoch
    assert epoch > 3
    desk.is_silent = True
    topics = [
        AlterShareGroupOffsetsRequestTopic("audit", [AlterShareGroupOffsetsRequestPartition(0, 9)]),
        AlterShareGroupOffsetsRequestTopic(
            "orders",
            [
                AlterShareGroupOffsetsRequestPartition(1, 5),
                AlterShareGroupOffsetsRequestPartition(2, 6),
                AlterShareGroupOffsetsRequestPartition(0, 0),
            ],
        ),
        AlterShareGroupOffsetsRequestTopic("audit", [AlterShareGroupOffsetsRequestPartition(0, 3)]),
    ]
    number = desk.send(AlterShareGroupOffsetsRequest("g", topics), 0)
    assert number not in desk.answers
    request = begun(desk)
    assert request.group_id == "g"
    assert [
        (topic.topic_id, [(row.partition, row.state_epoch, row.start_offset) for row in topic.partitions])
        for topic in request.topics
    ] == [
        (desk.topics.topic_id("orders"), [(1, epoch, 5), (0, epoch, 0)]),
        (desk.topics.topic_id("audit"), [(0, epoch, 9)]),  # of two rows the first, in the place of the last
    ]
    desk.refusals = {1: ErrorCode.NOT_COORDINATOR}
    desk.answer_asked()
    answer: Any = desk.answers[number]
    assert altered(answer) == {
        "orders": {1: ErrorCode.NOT_COORDINATOR, 2: UNKNOWN, 0: 0},
        "audit": {0: 0},
    }
    assert [[row.error_message for row in topic.partitions] for topic in answer.responses] == [
        [ErrorCode.NOT_COORDINATOR.message, UNKNOWN.message, None],
        [None],
    ]
    assert noted(desk) == (["orders", "audit"], ["orders"], [])


def test_share_coordinators_are_not_asked_for_nothing() -> None:
    desk = desk_of(orders=2)
    desk.is_silent = True
    assert altered(alter(desk, {"orders": {2: 1}, "nowhere": {0: 1}})) == {
        "nowhere": {0: UNKNOWN},
        "orders": {2: UNKNOWN},
    }
    assert alter(desk, {}).responses == []
    assert deleted(delete(desk, "orders")) == {"orders": UNKNOWN}
    assert deleted(delete(desk)) == {}
    assert desk.asked == []
    assert noted(desk) == (["orders"], [], [])


def test_a_group_that_has_begun_nothing_has_nothing_to_delete() -> None:
    desk = desk_of(orders=2)
    Sharer(desk, "m1", "nowhere").join()
    desk.heartbeat("m1", -1)
    desk.is_silent = True
    count = len(desk.records())
    answer = delete(desk, "orders")
    assert (answer.error_code, answer.responses) == (0, [])
    assert len(desk.records()) == count
    (row,) = desk.ask(DeleteGroupsRequest(("g",)), 2).results
    assert row.error_code == 0


def test_offsets_are_deleted_of_what_was_begun_and_asked_again_of_what_is_deleting() -> None:
    desk = desk_of(orders=3, audit=1, other=1)
    alter(desk, {"orders": {2: 5, 0: 5}, "other": {0: 1}})
    desk.is_silent = True
    first = desk.send(DeleteShareGroupOffsetsRequest("g", [DeleteShareGroupOffsetsRequestTopic("orders")]), 0)

    def asked() -> list[tuple[bytes, list[int]]]:
        return [(one.topic_id, [row.partition for row in one.partitions]) for one in begun(desk).topics]

    orders = desk.topics.topic_id("orders")
    assert (begun(desk).group_id, asked()) == ("g", [(orders, [0, 2])])
    assert noted(desk) == ([], ["other"], ["orders"])
    rows = [DeleteShareGroupOffsetsRequestTopic(name) for name in ("audit", "orders", "orders", "other")]
    second = desk.send(DeleteShareGroupOffsetsRequest("g", rows), 0)
    assert asked() == [(orders, [0, 1, 2]), (desk.topics.topic_id("other"), [0])]  # all that it may know
    desk.answer_asked()
    assert [
        [(one.topic_name, one.error_code, one.topic_id) for one in desk.answers[number].responses]  # type: ignore[attr-defined]
        for number in (first, second)
    ] == [
        [("orders", 0, orders)],
        [("orders", 0, orders), ("other", 0, desk.topics.topic_id("other")), ("audit", UNKNOWN, ZERO_UUID)],
    ]
    assert noted(desk) == ([], [], [])


def test_a_topic_whose_state_stays_is_answered_with_its_first_error() -> None:
    desk = desk_of(orders=3, audit=1)
    alter(desk, {"orders": {0: 5, 1: 5, 2: 5}, "audit": {0: 1}})
    desk.refusals = {1: ErrorCode.NOT_COORDINATOR, 2: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    answer = delete(desk, "orders", "audit")
    code = ErrorCode.NOT_COORDINATOR
    assert [(one.topic_name, one.error_code, one.error_message) for one in answer.responses] == [
        ("audit", 0, None),
        ("orders", code, code.message),
    ]
    assert answer.responses[1].topic_id == desk.topics.topic_id("orders")
    assert noted(desk) == ([], [], ["orders"])


def test_a_group_may_fail_go_or_move_while_its_offsets_are_deleted() -> None:
    desk = desk_of(orders=1)

    def deletion_under_way() -> int:
        desk.is_silent = False
        alter(desk, {"orders": {0: 5}})
        desk.is_silent = True
        topics = [DeleteShareGroupOffsetsRequestTopic("orders")]
        return desk.send(DeleteShareGroupOffsetsRequest("g", topics), 0)

    def told(number: int) -> tuple[int, dict[str, int]]:
        desk.answer_asked()
        return desk.answers[number].error_code, deleted(desk.answers[number])  # type: ignore[attr-defined]

    number = deletion_under_way()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert told(number) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, {})
    desk.failure = None
    number = deletion_under_way()
    (asked,) = desk.asked
    desk.asked, desk.is_silent = [], False
    (row,) = desk.ask(DeleteGroupsRequest(("g",)), 2).results
    assert row.error_code == 0
    count = len(desk.records())
    desk.asked = [asked]
    assert told(number) == (0, {"orders": 0})
    assert len(desk.records()) == count
    number = deletion_under_way()
    desk.step(PartitionResigned(0))
    assert told(number) == (ErrorCode.NOT_COORDINATOR, {})


def test_groups_are_deleted_together_but_for_those_whose_state_stays() -> None:
    desk = desk_of(orders=2, audit=1)
    names = ("a", "b", "c", "d")
    for group, offsets in zip(names, ({0: 1}, {0: 1, 1: 1}, {1: 1}, {}), strict=True):
        rows = [AlterShareGroupOffsetsRequestPartition(*one) for one in offsets.items()]
        topics = [AlterShareGroupOffsetsRequestTopic("orders", rows)]
        if group == "b":
            topics.append(
                AlterShareGroupOffsetsRequestTopic("audit", [AlterShareGroupOffsetsRequestPartition(0, 1)])
            )
        desk.ask(AlterShareGroupOffsetsRequest(group, topics), 0)
    Sharer(desk, "m1").join()
    desk.refusals = {1: ErrorCode.NOT_COORDINATOR}
    results = desk.ask(DeleteGroupsRequest(("none", *names, "g")), 2).results
    assert {row.group_id: row.error_code for row in results} == {
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
        "a": 0,
        "b": ErrorCode.NOT_COORDINATOR,
        "c": ErrorCode.NOT_COORDINATOR,
        "d": 0,
        "g": ErrorCode.NON_EMPTY_GROUP,
    }
    desk.refusals = {}
    desk.is_silent = True
    number = desk.send(DeleteGroupsRequest(("b", "c")), 2)
    asked = [one.request for one in desk.asked]  # type: ignore[union-attr]
    assert [
        (one.group_id, sorted([row.partition for row in topic.partitions] for topic in one.topics))
        for one in asked
    ] == [("b", [[0], [0, 1]]), ("c", [[0, 1]])]
    desk.answer_asked()
    assert [row.error_code for row in desk.answers[number].results] == [0, 0]  # type: ignore[attr-defined]
    assert desk.describe("b").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_all_that_share_coordinators_may_have_of_a_group_goes_with_it() -> None:
    """What is deleting or initializing as well, but not what is deleting of a topic that is gone."""
    desk = desk_of(orders=3, audit=2, gone=1)
    alter(desk, {"orders": {0: 1, 2: 1}, "audit": {0: 1}, "gone": {0: 1}})
    desk.refusal = ErrorCode.NOT_COORDINATOR
    delete(desk, "audit", "gone")
    alter(desk, {"orders": {1: 1}})
    desk.topics.change("gone", None)
    desk.is_silent = True
    desk.send(DeleteGroupsRequest(("g",)), 2)
    asked = {topic.topic_id: [row.partition for row in topic.partitions] for topic in begun(desk).topics}
    assert asked == {desk.topics.topic_id("orders"): [0, 1, 2], desk.topics.topic_id("audit"): [0, 1]}
    assert sorted(noted(desk)[2]) == ["audit", "orders"]
