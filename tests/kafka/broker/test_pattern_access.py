"""What a pattern of a consumer group stands for where ACLs decide, at a stock node and at kraftd's (KIP-848).

Both resolve it with the rights of the member whose heartbeat has them look; members with the same pattern
share what was found. Rights that change are seen when the pattern is looked up again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from testkit.cluster import random_uuid
from testkit.process import wait_until
from tests.groups.consumer.members import Consumer, joining
from tests.kafka.broker.pair import NO_RIGHTS, SOME_RIGHTS, SUPER, BrokerPair, Side

pytestmark = pytest.mark.kafka

GROUP, OTHER_GROUP = "patterns", "patterns-of-another"
PATTERN = "t-.*"
REFRESH_MS = 10_000
DENIED = {"apache": "is Denied operation = DESCRIBE", "kraftd": '"result":"Denied"'}


@pytest.fixture
def own_pair(tmp_path: Path) -> Iterator[BrokerPair]:
    pair = BrokerPair(tmp_path)
    for side in pair.sides:
        side.node.properties["group.consumer.regex.refresh.interval.ms"] = REFRESH_MS
        side.node.write_properties()
    with pair:
        yield pair


def grant(side: Side, *rights: tuple[str, AclOperation, AclResourceType, str]) -> None:
    literal, allow = AclPatternType.LITERAL, AclPermission.ALLOW
    rows = [
        AclCreation(int(type), name, int(literal), f"User:{who}", "*", int(operation), int(allow))
        for who, operation, type, name in rights
    ]
    answer: Any = side.ask(CreateAclsRequest(rows), 3)
    assert not any(row.error_code for row in answer.results), answer


def member(side: Side, principal: str, group: str = GROUP) -> Consumer:
    found = Consumer(
        lambda request, version: side.ask(request, version, principal),
        random_uuid(),
        group=group,
        topics=None,
        regex=PATTERN,
    )
    found.join()
    return found


def wait_for(names: dict[bytes, str], expected: dict[Consumer, set[str]]) -> None:
    """Let members send heartbeats until they have partitions of these topics."""

    def is_so() -> bool:
        for one in expected:
            one.beat()
        return all({names[at] for at, parts in one.has.items() if parts} == expected[one] for one in expected)

    wait_until(is_so, f"{expected} settle", 3 * REFRESH_MS / 1000, poll_s=0.1)


def seen(side: Side) -> list[Any]:
    """What a side does, step by step; it waits until members have what they should."""
    created: Any = side.ask(CreateTopicsRequest([CreatableTopic(n, 2, 1) for n in ("t-seen", "t-hidden")]), 7)
    names = {topic.topic_id: topic.name for topic in created.topics}
    group, topic = AclResourceType.GROUP, AclResourceType.TOPIC
    grant(
        side,
        (SOME_RIGHTS, AclOperation.READ, group, GROUP),
        (NO_RIGHTS, AclOperation.READ, group, GROUP),
        (NO_RIGHTS, AclOperation.READ, group, OTHER_GROUP),
        (SOME_RIGHTS, AclOperation.DESCRIBE, topic, "t-seen"),
    )
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,))
    wait_until(lambda: not side.ask(find, 4).coordinators[0].error_code, "the coordinator is there")  # type: ignore[union-attr]
    time.sleep(1)  # its partitions are loaded
    one = member(side, SOME_RIGHTS)
    wait_for(names, {one: {"t-seen"}})
    two, alone = member(side, NO_RIGHTS), member(side, NO_RIGHTS, OTHER_GROUP)
    wait_for(names, {one: {"t-seen"}, two: {"t-seen"}, alone: set()})
    found: list[Any] = [side.node.log_text().count(DENIED[side.kind])]
    for who in (SOME_RIGHTS, NO_RIGHTS, SUPER):
        answer: Any = side.ask(ConsumerGroupDescribeRequest((GROUP,)), 1, who)
        found.append([(row.error_code, len(row.members)) for row in answer.groups])
    for name in ("t-hidden", "missing"):
        answer = side.ask(joining(random_uuid(), (name,), group=GROUP), 1, SOME_RIGHTS)
        found.append(answer.error_code)
    grant(side, (SOME_RIGHTS, AclOperation.DESCRIBE, topic, "t-hidden"))
    wait_for(names, {one: {"t-seen", "t-hidden"}})  # a member without rights would look for no topics again
    wait_for(names, {one: {"t-seen", "t-hidden"}, two: {"t-seen", "t-hidden"}})
    return found


def test_a_pattern_stands_for_what_its_member_may_describe(own_pair: BrokerPair) -> None:
    of_kafka, own = (seen(side) for side in own_pair.sides)
    assert own == of_kafka and own[0] == 0
