"""`kraftd groups` and `transactions` where one group, id or broker of several is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraftd.client import group_description, groups, transactions
from kraftd.client.failures import Unreachable
from kraftd.client.group_description import GroupPartition, GroupState
from kraftd.client.transactions import ListedId
from kraftd.messages.list_groups_response import ListedGroup
from tests.cli.run import run

MISSING = {
    "broker 2": "host2:9092: no answer in time",
    "3 partitions of __t": "__t-0 has no leader",
}


async def described(cluster: Any, group: str) -> GroupState:
    state = "Dead" if group == "gone" else "Empty"
    if group == "lost":
        raise Unreachable("group lost: COORDINATOR_NOT_AVAILABLE")
    if group not in ("stuck", "partly"):
        return GroupState(group, "classic", state, "", "host1:9092", (), ())
    missing = ("t-0 has no leader", "t-1 has no leader")
    partitions = tuple(GroupPartition("t", index, 7, None, None) for index in (0, 1))
    if group == "partly":
        partitions += (GroupPartition("t", 2, 7, 9, None),)
    return GroupState(group, "classic", state, "", "host1:9092", (), partitions, missing=missing)


def test_a_missing_group_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_description, "describe_group", described)
    done = run("groups", "describe", "gone", *(f"g{number}" for number in range(45)))
    assert (done.code, done.err) == (1, "There is no group gone.\n")
    assert [line.split()[1] for line in done.out.splitlines()] == [f"g{number}" for number in range(45)]
    done = run("groups", "describe", "lost", "g")
    assert (done.code, done.err) == (5, "group lost: COORDINATOR_NOT_AVAILABLE\n")
    assert done.out.startswith("Group g ")


def test_a_group_is_shown_and_the_command_fails_without_the_end_of_a_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_description, "describe_group", described)
    done = run("groups", "describe", "stuck", "g")
    assert (done.code, done.err) == (1, "The end of a log is not known: t-0 has no leader, and 1 more.\n")
    stuck, *_, other = done.out.splitlines()
    assert "total lag unknown" in stuck and "total lag 0" in other, "no lag is taken for 0"
    assert json.loads(run("groups", "describe", "stuck", "--json").out)["lag"] is None
    assert "total lag at least 2" in run("groups", "describe", "partly").out


def test_a_line_feed_in_a_groups_name_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_description, "describe_group", described)
    assert run("groups", "describe", "a\nb").out.startswith("Group a\\u000ab (classic): Empty")


def test_lists_name_the_brokers_whose_part_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def listed_groups(cluster: Any) -> Any:
        return [ListedGroup("g", "consumer", "Empty", "classic")], MISSING

    async def listed_ids(*_: object) -> Any:
        return [ListedId("id", "Empty", 7, 1)], MISSING

    async def none_open(*_: object) -> list[Any]:
        return []

    monkeypatch.setattr(groups, "list_groups", listed_groups)
    monkeypatch.setattr(transactions, "list_transactions", listed_ids)
    monkeypatch.setattr(transactions, "describe_all", none_open)
    for command, what in (("groups", "groups"), ("transactions", "transactional ids")):
        done = run(command, "list")
        assert (done.code, len(done.out.splitlines())) == (1, 2)
        assert done.err == (
            f"The {what} of broker 2 are missing: host2:9092: no answer in time.\n"
            f"The {what} of 3 partitions of __t are missing: __t-0 has no leader.\n"
        )
