"""What Kafka's own tests ask of its assignors is given alike by kraftd's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import (
    Assigned,
    AssignorFailed,
    GroupSpec,
    MemberSpec,
    Partitions,
    finish,
)
from kraftd.groups.share.assignor import assign_simply
from kraftd.types import parse_uuid
from tests.kafkas_tests.agent import Columns, lines_of

pytestmark = [pytest.mark.kafka, pytest.mark.thorough, pytest.mark.timeout(300)]

PACKAGE = "org.apache.kafka.coordinator.group.assignor"
CLASSES = (
    "RangeAssignorTest",
    "SimpleAssignorTest",
    "UniformHeterogeneousAssignmentBuilderTest",
    "UniformHomogeneousAssignmentBuilderTest",
)
JAVA = Path(__file__).parents[1] / "java" / "KafkasAssignors.java"
LEAST = 500
NO_TOPIC = "a group asks for topics that exist"
ORDERED = "its map of topics has another order than a target that was recorded"
BUCKETS = "docs/divergence.md: Which partitions of a share group move"
OTHERWISE = {
    "RangeAssignorTest.testOneMemberSubscribedToNonExistentTopic": NO_TOPIC,
    "SimpleAssignorTest.testAssignWithSubscribedToNonExistentTopic": NO_TOPIC,
    "UniformHeterogeneousAssignmentBuilderTest.testTwoMembersSubscribedToNonexistentTopics": NO_TOPIC,
    "UniformHomogeneousAssignmentBuilderTest.testOneMemberSubscribedToNonexistentTopic": NO_TOPIC,
    "UniformHomogeneousAssignmentBuilderTest"
    ".testReassignmentForTwoMembersTwoTopicsGivenUnbalancedPrevAssignment": ORDERED,
    "UniformHomogeneousAssignmentBuilderTest"
    ".testReassignmentWhenOneMemberAddedAfterInitialAssignmentWithTwoMembersTwoTopics": ORDERED,
    "SimpleAssignorTest.testIncrementalAssignmentDecreasingMembersHomogeneous": BUCKETS,
    "SimpleAssignorTest.testIncrementalAssignmentIncreasingMembersHomogeneous": BUCKETS,
}
"""Tests that may have an assignment that is not the same, and why. Ids of topics are random in some."""


def partitions_of(text: str) -> dict[bytes, frozenset[int]]:
    rows = (row.split(":") for row in text.split(",") if row)
    return {
        parse_uuid(id): frozenset(int(each) for each in indexes.split(".") if each) for id, indexes in rows
    }


def members_of(text: str) -> Iterator[tuple[str, MemberSpec]]:
    for row in filter(None, text.split(";")):
        id, instance, topics, assigned = row.split("|")
        subscribed = [parse_uuid(each) for each in topics.split(",") if each]
        yield id, MemberSpec(None if instance == "-" else instance, subscribed, partitions_of(assigned))


def without_nothing(assigned: Mapping[str, Partitions]) -> dict[str, dict[bytes, set[int]]]:
    return {
        id: {topic: set(indexes) for topic, indexes in some.items() if indexes}
        for id, some in assigned.items()
    }


def assigned_by_kraftd(asked: Columns) -> Assigned:
    name, kind, counts, members, assignable = asked
    known = {parse_uuid(id): int(count) for id, count in (row.split("=") for row in counts.split(";") if row)}
    spec = GroupSpec(dict(members_of(members)), kind == "Homogeneous", known)
    if name == "SimpleAssignor":
        allowed: dict[bytes, frozenset[int]] = {id: frozenset(range(count)) for id, count in known.items()}
        return finish(assign_simply(spec, allowed if assignable == "all" else partitions_of(assignable)))
    return finish(ASSIGNORS[name.removesuffix("Assignor").lower()](spec))


def difference(asked: Columns, kind: str, columns: Columns) -> str | None:
    try:
        own = without_nothing(assigned_by_kraftd(asked))
    except (AssignorFailed, KeyError) as error:
        return None if kind == "refused" else repr(error)
    if kind == "refused":
        return f"gave {own}"
    rows = (row.split("|") for row in columns[0].split(";") if row)
    kafkas = without_nothing({id: partitions_of(text) for id, text in rows})
    return None if own == kafkas else f"gave {own}\n    Kafka's: {kafkas}"


def test_assignors_give_what_kafkas_own_tests_are_given() -> None:
    differences: list[tuple[str, str]] = []
    test, count, asked = "", 0, [""]
    for kind, *columns in lines_of(
        f"{PACKAGE}.KafkasAssignors", [f"{PACKAGE}.{one}" for one in CLASSES], JAVA
    ):
        if kind == "test":
            test = columns[0]
        elif kind == "ended":
            assert columns[0] == "SUCCESSFUL", (test, columns)
        elif kind == "assign":
            asked = columns
        else:
            count += 1
            found = difference(asked, kind, columns)
            if found is not None:
                differences.append((test, f"{asked}\n    {found}"))
    unexpected = [f"{name}: {text}" for name, text in differences if name not in OTHERWISE]
    assert not unexpected, "\n".join(unexpected[:3])
    assert count >= LEAST
