"""What `kraftd groups describe` prints of a group."""

from __future__ import annotations

import pytest

from kraftd.cli.brokers.group_text import show_group
from kraftd.client.group_description import GroupPartition, GroupState, Member


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
