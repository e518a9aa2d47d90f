"""Which joins wait for others, and for a target that is computed in slices; several groups at once."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.custom import Custom
from kraftd.groups.consumer.gathering import ALONE_MS, QUIET_MS
from kraftd.groups.events import PartitionResigned
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import DESCRIBE, HEARTBEAT, joining, partitions
from tests.groups.desk import Desk

KEY = "consumer.assignment.interval.ms"


def test_members_of_two_groups_wait_at_once() -> None:
    desk = Desk(orders=4)
    sent = [desk.send(joining("m1", group=group), HEARTBEAT) for group in ("g", "h")]
    desk.wait(ALONE_MS - 1)
    assert not desk.answers.keys() & set(sent)
    desk.wait(1)
    for number in sent:
        assert partitions(desk.answers[number]) == {desk.topics.topic_id("orders"): [0, 1, 2, 3]}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("of_broker", "own", "waits"),
    [(0, None, False), (0, "1", True), (1_000, "0", False), (1_000, None, True)],
)
def test_the_groups_own_interval_of_targets_decides_whether_a_first_member_waits(
    of_broker: int, own: str | None, waits: bool
) -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=of_broker), orders=4)
    if own is not None:
        desk.topics.configs["g"] = {KEY: own}
    assert (desk.send(joining("m1"), HEARTBEAT) not in desk.answers) is waits


@pytest.mark.parametrize("names", [("m1",), ("m1", "m2")])
@pytest.mark.parametrize("assignor", ["own", None])
def test_members_wait_for_the_custom_assignor_that_they_prefer(
    names: tuple[str, ...], assignor: str | None
) -> None:
    def assign(spec: Any) -> Any:
        yield 50
        return {
            name: {topic_id: {0} for topic_id in spec.partition_counts} for name in sorted(spec.members)[:1]
        }

    known = {"range": ASSIGNORS["range"], "own": Custom("own", assign, lambda *_: None)}
    desk = Desk(GroupConfig(group_consumer_assignors=list(known), assignors=known), orders=4)
    sent = [desk.send(joining(name, assignor=assignor), HEARTBEAT) for name in names]
    desk.wait(ALONE_MS if len(names) == 1 else QUIET_MS)
    assert all(number in desk.answers for number in sent) is (assignor is None)
    desk.wait(100)
    (has,) = (partitions(desk.answers[sent[0]]) or {}).values()  # type: ignore[arg-type]
    assert has == ([0] if assignor else list(range(4 // len(names))))


def test_each_refused_description_names_its_group() -> None:
    desk = Desk(orders=4)

    def rows() -> list[tuple[str, int]]:
        answer = desk.ask(ConsumerGroupDescribeRequest(("g", "h")), DESCRIBE)
        return [(row.group_id, row.error_code) for row in answer.groups]

    assert rows() == [("g", ErrorCode.GROUP_ID_NOT_FOUND), ("h", ErrorCode.GROUP_ID_NOT_FOUND)]
    desk.step(PartitionResigned(0))
    assert rows() == [("g", ErrorCode.NOT_COORDINATOR), ("h", ErrorCode.NOT_COORDINATOR)]
    desk.coordinator.group_version = 0
    assert rows() == [("g", ErrorCode.UNSUPPORTED_VERSION), ("h", ErrorCode.UNSUPPORTED_VERSION)]
