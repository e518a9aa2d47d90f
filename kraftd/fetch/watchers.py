"""The subscribers to notify of a partition's next change: one chain for each partition.

The chain runs through its members, so that 100,000 watched partitions cost no set each, and a member leaves
its chain in constant time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

M = TypeVar("M", bound="Member")


class Member(Protocol):
    """A member of a chain; `watching` is the chain's key."""

    watching: Hashable | None
    next_watching: Member | None
    previous_watching: Member | None

    def watch_key(self) -> Hashable:
        """The key under which it would watch now."""


class Watchers(Generic[M]):
    """Members by the key that they watch."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[Hashable, M] = {}

    def __len__(self) -> int:
        return len(self._first)

    def watch(self, member: M) -> None:
        """Watch for the next change under its key; does nothing if it watches already."""
        if member.watching is not None:
            return
        key = member.watch_key()
        first = self._first.get(key)
        member.watching = key
        member.next_watching = first
        if first is not None:
            first.previous_watching = member
        self._first[key] = member

    def unwatch(self, member: M) -> None:
        key = member.watching
        if key is None:
            return
        before, after = member.previous_watching, member.next_watching
        if after is not None:
            after.previous_watching = before
        if before is not None:
            before.next_watching = after
        elif after is not None:
            self._first[key] = after  # type: ignore[assignment]
        else:
            del self._first[key]
        member.watching = member.previous_watching = member.next_watching = None

    def under(self, key: Hashable) -> list[M]:
        """The members that watch `key`."""
        members = []
        member: M | None = self._first.get(key)
        while member is not None:
            members.append(member)
            member = member.next_watching  # type: ignore[assignment]
        return members

    def __repr__(self) -> str:
        return f"<Watchers of {len(self._first)} keys>"
