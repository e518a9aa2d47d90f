"""Which member of a consumer group has a partition, or still has to give it up.

A topic's partitions of members with few of them stand in one dictionary, which each change replaces. A member
with very many is noted as it is, so that its steps cost no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftd.groups.consumer.member import Member
from kraftd.groups.timeline import Timeline

MANY = 5000  # partitions of a topic; a member with more is noted as a whole

# What a member has of a topic, and what it is to give up of it.
Held = tuple[Mapping[int, int], Mapping[int, int]]
NOTHING: Mapping[int, int] = {}
NONE_HELD: Held = NOTHING, NOTHING


class Owners:
    """By topic id: the members by partition, and what members with many partitions have.

    A partition belongs to the member that got it last, until that one has given it up.
    """

    __slots__ = ("_timeline", "few", "many")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.few: dict[bytes, dict[int, str]] = {}
        self.many: dict[bytes, dict[str, Held]] = {}

    def __repr__(self) -> str:
        return f"<Owners of {len({**self.few, **self.many})} topics>"

    def __bool__(self) -> bool:
        return bool(self.few or self.many)

    def owner(self, topic_id: bytes, index: int) -> str | None:
        """The member that has a partition; None if no member has it."""
        found = self.few.get(topic_id, {}).get(index)
        if found is None:
            for member_id, held in self.many.get(topic_id, {}).items():
                if any(index in one for one in held):
                    return member_id
        return found

    def free(self, topic_id: bytes, indexes: Iterable[int], member: Member) -> list[int]:
        """Those of some partitions that no other member has; this one may take back what it is to give up."""
        few, (_, own) = self.few.get(topic_id, {}), _held(member, topic_id)
        free = [index for index in indexes if index not in few or index in own]
        left = set(free)
        for member_id, held in self.many.get(topic_id, {}).items():
            for one in held:
                if one and one is not own and member_id != member.member_id:
                    left = left.difference(one)
        return free if len(left) == len(free) else [index for index in free if index in left]

    def noted(self, topic_ids: Iterable[bytes]) -> list[object]:
        """What is noted of some topics: the same objects as long as it does not change."""
        return [notes.get(topic_id) for topic_id in topic_ids for notes in (self.few, self.many)]

    def change(self, old: Member | None, new: Member | None) -> None:
        """A member has become another, come or gone."""
        topics: dict[bytes, None] = {}
        for member in (old, new):
            if member is not None:
                topics |= dict.fromkeys(member.assigned) | dict.fromkeys(member.revoking)
        for topic_id in topics:
            had, has = _held(old, topic_id), _held(new, topic_id)
            if had[0] is not has[0] or had[1] is not has[1]:
                self._change_many(topic_id, had, has, old or new)
                self._change_few(topic_id, _few(had), _few(has), old or new)

    def _change_many(self, topic_id: bytes, had: Held, has: Held, member: Member | None) -> None:
        assert member is not None
        if not (_is_large(had) or _is_large(has)):
            return
        members = dict(self.many.get(topic_id, {}))
        members.pop(member.member_id, None)
        if _is_large(has):
            members[member.member_id] = has
        if members:
            self._timeline.put(self.many, topic_id, members)
        else:
            self._timeline.remove(self.many, topic_id)

    def _change_few(self, topic_id: bytes, had: set[int], has: set[int], member: Member | None) -> None:
        """Replace a topic's partitions as a whole: that costs less than a note of each."""
        assert member is not None
        lost, got = had - has, has - had
        if not lost and not got:
            return
        owners = dict(self.few.get(topic_id, ()))
        for index in lost:
            if owners.get(index) == member.member_id:
                del owners[index]
        owners.update(dict.fromkeys(got, member.member_id))
        if owners:
            self._timeline.put(self.few, topic_id, owners)
        else:
            self._timeline.remove(self.few, topic_id)


def _held(member: Member | None, topic_id: bytes) -> Held:
    if member is None:
        return NONE_HELD
    return member.assigned.get(topic_id, NOTHING), member.revoking.get(topic_id, NOTHING)


def _is_large(held: Held) -> bool:
    return len(held[0]) + len(held[1]) > MANY


def _few(held: Held) -> set[int]:
    """The partitions, if they are not noted as a whole."""
    return set() if _is_large(held) else {*held[0], *held[1]}
