"""What time does to groups: the same at a stock broker and at kraftd's coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from testkit.cluster import Cluster
from tests.groups.requests import BEAT, JOIN, beat, join, sync
from tests.kafka.groups.pair import LONG_MS, Pair

pytestmark = pytest.mark.kafka

SHORT_MS = 1_500


def described(pair: Pair, group: str) -> Any:
    """The group as both sides describe it."""
    token = pair.send(DescribeGroupsRequest((group,)), 5)
    return pair.desk.answers[token].groups[0]  # type: ignore[attr-defined]


def joined(pair: Pair, group: str, session_ms: int, rebalance_ms: int = LONG_MS) -> str:
    """A member whose JoinGroup both sides have taken."""
    token = pair.send(join(group, session_ms=session_ms), JOIN)
    member: str = pair.desk.answers[token].member_id  # type: ignore[attr-defined]
    pair.send(join(group, member, session_ms=session_ms, rebalance_ms=rebalance_ms), JOIN)
    return member


def test_members_that_fall_silent_are_removed(group_broker: Cluster) -> None:
    pair = Pair(group_broker)
    try:
        member = joined(pair, "silent", SHORT_MS)
        pair.send(sync(1, member, {member: b"x"}, "silent"), 5)
        assert described(pair, "silent").group_state == "Stable"
        pair.pause(SHORT_MS / 1000 + 1)
        assert described(pair, "silent").group_state == "Empty"
        pair.send(beat(1, member, group="silent"), BEAT)
    finally:
        pair.close()


def test_member_ids_that_are_not_used_are_forgotten(group_broker: Cluster) -> None:
    pair = Pair(group_broker)
    try:
        token = pair.send(join("unused", session_ms=SHORT_MS), JOIN)
        member = pair.desk.answers[token].member_id  # type: ignore[attr-defined]
        pair.pause(SHORT_MS / 1000 + 1)
        pair.send(join("unused", member, session_ms=SHORT_MS), JOIN)
        assert described(pair, "unused").group_state == "Empty"
    finally:
        pair.close()


def test_members_that_do_not_rejoin_or_sync_in_time_are_removed(group_broker: Cluster) -> None:
    pair = Pair(group_broker)
    try:
        first = joined(pair, "late", LONG_MS, SHORT_MS)
        second = joined(pair, "late", LONG_MS, SHORT_MS)
        assert described(pair, "late").group_state == "PreparingRebalance"
        pair.pause(SHORT_MS / 1000 + 1)  # the first does not rejoin: it goes, and the second leads
        assert described(pair, "late").group_state == "CompletingRebalance"
        pair.send(beat(2, first, group="late"), BEAT)
        pair.pause(SHORT_MS / 1000 + 1)  # the second does not sync
        assert described(pair, "late").group_state == "Empty"
        pair.send(beat(2, second, group="late"), BEAT)
    finally:
        pair.close()
