"""DescribeShareGroupOffsets: how far a share group has come in each partition, and how far it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.events import PartitionResigned
from kraftd.groups.share.effects import FindLatestOffsets
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from tests.groups.share.members import Denied, ShareDesk, Sharer, settle

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
DENIED_TOPIC = AclOperation.DESCRIBE, AclResourceType.TOPIC, "audit"
DENIED_GROUP = AclOperation.DESCRIBE, AclResourceType.GROUP, "hidden"

Asked = Mapping[str, tuple[int, ...]] | None  # all that is known


class ProgressDesk(ShareDesk):
    """`come` has the start offset and the complete count of partitions, by number; others are refused."""

    come: Mapping[int, tuple[int, int]] = {}

    def result(self, api: Any, row: Any) -> Any:
        if row.partition not in self.come or not hasattr(api.result(), "delivery_complete_count"):
            return super().result(api, row)
        start, complete = self.come[row.partition]
        return api.result(row.partition, 0, None, 2, 7, start, complete)

    def progress(self, groups: Mapping[str, Asked], *denied: Denied) -> list[Any]:
        asked = [
            DescribeShareGroupOffsetsRequestGroup(
                group_id,
                None
                if topics is None
                else [DescribeShareGroupOffsetsRequestTopic(name, some) for name, some in topics.items()],
            )
            for group_id, topics in groups.items()
        ]
        answer = self.ask_denied(DescribeShareGroupOffsetsRequest(asked), 1, *denied)
        return list(answer.groups)


def rows(group: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Of each partition its number, start, leader's epoch, lag, error and text."""
    return {
        topic.topic_name: [
            (
                row.partition_index,
                row.start_offset,
                row.leader_epoch,
                row.lag,
                row.error_code,
                row.error_message,
            )
            for row in topic.partitions
        ]
        for topic in group.topics
    }


def begun(**topics: int) -> ProgressDesk:
    desk = ProgressDesk(**topics)
    one = Sharer(desk, "m", *topics)
    one.join()
    settle(one)
    return desk


def test_the_lag_is_what_is_left_up_to_the_end_without_what_is_done__kip932() -> None:
    desk = begun(orders=5)
    desk.come = {0: (10, 3), 1: (10, 0), 2: (-1, -1), 3: (8, -1)}  # of 4 nothing is known
    desk.refusal = ErrorCode.NOT_COORDINATOR
    desk.ends = {("orders", 0): 20, ("orders", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER}
    (group,) = desk.progress({"g": None})
    assert (group.group_id, group.error_code, group.error_message) == ("g", 0, None)
    (topic,) = group.topics
    assert topic.topic_id == desk.topics.topic_id("orders")
    assert rows(group) == {
        "orders": [
            (0, 10, 7, 7, 0, None),
            (1, 0, 0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER.message),
            (2, -1, 7, -1, 0, None),  # not begun
            (3, 8, 7, -1, 0, None),  # its coordinator does not count
            (4, -1, 0, -1, 0, None),
        ]
    }
    desk.ends = {("orders", 0): 13}
    (group,) = desk.progress({"g": {"orders": (1, 0)}})
    assert rows(group)["orders"] == [(1, 0, 0, -1, UNKNOWN, UNKNOWN.message), (0, 10, 7, 0, 0, None)]


def test_only_what_is_needed_is_asked() -> None:
    desk = begun(orders=3)
    desk.come = {0: (1, 0), 1: (-1, 0), 2: (5, -1)}
    desk.is_silent = True
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("g", None)])
    number = desk.send(request, 1)
    (effect,) = desk.asked
    summary: Any = effect.request  # type: ignore[union-attr]
    assert isinstance(summary, ReadShareGroupStateSummaryRequest)
    (topic,) = summary.topics
    assert (summary.group_id, topic.topic_id) == ("g", desk.topics.topic_id("orders"))
    assert [(row.partition, row.leader_epoch) for row in topic.partitions] == [(0, -1), (1, -1), (2, -1)]
    assert number not in desk.answers
    desk.is_silent = False
    found: list[FindLatestOffsets] = []
    step = desk.step

    def noting(event: Any) -> None:
        step(event)
        found.extend(one for one in desk.asked if isinstance(one, FindLatestOffsets))

    desk.step = noting  # type: ignore[method-assign]
    desk.answer_asked()
    assert [one.places for one in found] == [[("orders", 0)]]
    assert repr(desk.coordinator.share.asking) == "<Asking 0 questions>"


def test_topics_that_do_not_exist_or_are_hidden_come_last__kip932() -> None:
    desk = begun(orders=1, audit=1)
    desk.come = {0: (4, 0)}
    desk.ends = {("orders", 0): 9, ("audit", 0): 4}
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    asked = {"audit": (0, 5), "nowhere": (3,), "orders": (0,)}
    (group,) = desk.progress({"g": asked}, DENIED_TOPIC)
    assert rows(group) == {
        "orders": [(0, 4, 7, 5, 0, None)],
        "nowhere": [(3, -1, 0, -1, 0, None)],
        "audit": [(index, -1, 0, -1, denied, denied.message) for index in (0, 5)],
    }
    assert [topic.topic_name for topic in group.topics] == ["orders", "nowhere", "audit"]
    assert [topic.topic_id == ZERO_UUID for topic in group.topics] == [False, True, True]
    (group,) = desk.progress({"g": None}, DENIED_TOPIC)
    assert list(rows(group)) == ["orders"]
    assert sorted(rows(desk.progress({"g": None})[0])) == ["audit", "orders"]
    desk.topics.change("orders", None)
    (group,) = desk.progress({"g": None}, DENIED_TOPIC)
    assert (group.error_code, group.topics) == (0, [])


def test_each_group_has_its_own_answer_in_the_order_asked() -> None:
    desk = begun(orders=1)
    desk.come = {0: (4, 0)}
    desk.ends = {("orders", 0): 9}
    groups: dict[str, Asked] = {"hidden": None, "none": None, "": None, "g": None}
    answers = desk.progress(groups, DENIED_GROUP)
    assert [(one.group_id, one.error_code, len(one.topics)) for one in answers] == [
        ("hidden", ErrorCode.GROUP_AUTHORIZATION_FAILED, 0),
        ("none", 0, 0),
        ("", 0, 0),
        ("g", 0, 1),
    ]
    assert desk.progress({}) == []
    desk.coordinator.share.version = 0
    answers = desk.progress({"g": None, "hidden": {"orders": (0,)}}, DENIED_GROUP)
    assert [(one.group_id, one.error_code) for one in answers] == [
        ("g", ErrorCode.UNSUPPORTED_VERSION),
        ("hidden", ErrorCode.UNSUPPORTED_VERSION),
    ]


@pytest.mark.parametrize("asked", [None, {"orders": (0,)}])
def test_only_the_question_for_all_partitions_needs_the_groups_coordinator(asked: Asked) -> None:
    desk = begun(orders=1)
    desk.come = {0: (4, 0)}
    desk.ends = {("orders", 0): 9}
    desk.step(PartitionResigned(0))
    (group,) = desk.progress({"g": asked})
    error = ErrorCode.NOT_COORDINATOR if asked is None else ErrorCode.NONE
    assert (group.error_code, len(group.topics)) == (error, asked is not None)
    assert group.error_message == (error.message if error else None)


@pytest.mark.parametrize(
    ("group_id", "asked"),
    [("", {"orders": (0,)}), ("g", {"orders": ()}), ("g", {"orders": (0, -1)})],
)
def test_what_no_share_coordinator_takes_is_an_unknown_error(group_id: str, asked: Asked) -> None:
    (group,) = begun(orders=1).progress({group_id: asked})
    assert (group.group_id, group.topics) == (group_id, [])
    assert (group.error_code, group.error_message) == (UNKNOWN, UNKNOWN.message)
