"""What `kraftd groups describe` prints of a group."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraftd.cli.brokers.group_text import show_group
from kraftd.client.group_description import GroupPartition, GroupState, Member
from kraftd.client.group_waits import waits_of_consumer
from kraftd.messages.consumer_group_describe_response import Assignment, DescribedGroup, TopicPartitions
from kraftd.messages.consumer_group_describe_response import Member as DescribedMember


def group(*instances: str | None) -> GroupState:
    """A member with a partition, and one without, by their instance ids."""
    reading, idle = (
        Member(f"m{at}", one, "app", "/10.0.0.1", () if at else (("in", 0),))
        for at, one in enumerate(instances)
    )
    partitions = (GroupPartition("in", 0, 7, 9, reading), GroupPartition("in", 1, None, 9, None))
    return GroupState("g", "consumer", "Stable", "uniform", "10.0.0.9:9092", (reading, idle), partitions)


@pytest.mark.parametrize("static", [False, True])
def test_static_members_have_their_instance_ids(static: bool, capsys: pytest.CaptureFixture[str]) -> None:
    show_group(group("s1" if static else None, None))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    more = [["INSTANCE"], ["s1"], ["-"], ["-"]] if static else [[]] * 4
    assert lines[1:] == [
        ["TOPIC", "PARTITION", "COMMITTED", "LOG", "END", "LAG", "CLIENT", "HOST", "MEMBER", *more[0]],
        ["in", "0", "7", "9", "2", "app", "/10.0.0.1", "m0", *more[1]],
        ["in", "1", "-", "9", "-", "-", "-", "-", *more[2]],
        ["Members", "without", "a", "partition:"],
        ["CLIENT", "HOST", "MEMBER", *more[0]],
        ["app", "/10.0.0.1", "m1", *more[3]],
    ]


def member(name: str, epoch: int, has: Sequence[int], target: Sequence[int]) -> DescribedMember:
    def of(indexes: Sequence[int]) -> Assignment:
        return Assignment([TopicPartitions(topic_name="in", partitions=tuple(indexes))])

    return DescribedMember(name, None, None, epoch, "app", "/h", (), None, of(has), of(target))


@pytest.mark.parametrize(
    ("epochs", "members", "waits_for"),
    [
        ((3, 3), [("a", 3, [0], [0]), ("b", 3, [1], [1])], []),
        (
            (4, 3),
            [("a", 3, [0], [0])],
            ["the target of epoch 4, which assignor mine is to compute; the last one is of epoch 3"],
        ),
        (
            (3, 3),
            [("a", 2, [0, 1, 2], [0]), ("b", 3, [], [1]), ("c", 3, [], [2])],
            ["app (a) to give up in-1, in-2, which app (b) and app (c) are to get"],
        ),
        ((3, 3), [("a", 2, range(8), [])], ["app (a) to give up in-0, in-1, in-2, in-3, in-4 and 3 more"]),
        ((3, 3), [("a", 2, [0], [0, 1])], ["app (a) to take in-1 with its next heartbeat"]),
        ((3, 3), [("a", 2, [0], [0])], ["app (a) of epoch 2 to hear of epoch 3"]),
    ],
)
def test_a_rebalance_names_the_members_that_it_waits_for__kip848(
    epochs: tuple[int, int], members: list[tuple[str, int, list[int], list[int]]], waits_for: list[str]
) -> None:
    group = DescribedGroup(members=[member(*one) for one in members])
    group.group_epoch, group.assignment_epoch = epochs
    group.assignor_name = "mine"
    assert list(waits_of_consumer(group)) == waits_for


def test_what_a_rebalance_waits_for_is_shown_above_the_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    show_group(group(None, None)._replace(waits_for=("a\nb to join", "others"), wait_ends="It ends."))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == ["The rebalance waits for:", "  a\\u000ab to join", "  others", "It ends."]
