"""Chains of watchers: a member may leave from any place, and the others stay."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import permutations

from kraftd.fetch.watchers import Member, Watchers


class Watcher:
    """A member that watches one key."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.watching: Hashable | None = None
        self.next_watching: Member | None = None
        self.previous_watching: Member | None = None

    def watch_key(self) -> Hashable:
        return self.key


def test_members_leave_in_any_order_and_the_others_stay() -> None:
    for order in permutations(range(4)):
        watchers, members = Watchers[Watcher](), [Watcher("a") for _ in range(4)]
        other = Watcher("b")
        for member in (*members, other, members[0]):
            watchers.watch(member)
        assert watchers.under("a") == members[::-1]
        remaining = members[::-1]
        for index in order:
            watchers.unwatch(members[index])
            watchers.unwatch(members[index])
            remaining.remove(members[index])
            assert watchers.under("a") == remaining
        assert (len(watchers), watchers.under("b")) == (1, [other])


def test_a_member_may_watch_again_at_the_head_of_its_chain() -> None:
    watchers, members = Watchers[Watcher](), [Watcher("a") for _ in range(3)]
    for member in members:
        watchers.watch(member)
    watchers.unwatch(members[1])
    watchers.watch(members[1])
    assert watchers.under("a") == [members[1], members[2], members[0]]
    members[1].key = "b"
    watchers.watch(members[1])
    assert watchers.under("b") == [], "it watches under its old key until it leaves"
