"""What a group is subscribed to once a member has changed or gone, and whether all members agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kraftd.groups.call import Metadata
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.records import Resolved
from kraftd.groups.modern_group import Subscribers, add_subscribers, names_after


class Subscription:
    """The ids of the topics to which a member is subscribed; true if it is, even if none of them exists."""

    __slots__ = ("_matched", "_metadata", "_named")

    def __init__(self, member: Member, resolved: Mapping[str, Resolved], metadata: Metadata) -> None:
        matched = resolved.get(member.regex or "")
        self._named = member.topics
        self._matched = frozenset[str]() if matched is None else matched.topics
        self._metadata = metadata

    def __bool__(self) -> bool:
        return bool(self._named or self._matched)

    def __contains__(self, topic_id: object) -> bool:
        assert isinstance(topic_id, bytes)
        name = self._metadata.topic_name(topic_id)
        return name in self._named or name in self._matched

    def inputs(self) -> list[object]:
        """What it depends on: the version of the metadata, and the topics that are named and matched."""
        return [self._metadata.hashes_version(), self._named, self._matched]


def topics_after(group: ConsumerGroup, old: Member, new: Member) -> dict[str, Subscribers]:
    """The topics with their subscribers when a member has become another."""
    topics = names_after(group.topics, old, new)
    if old.regex and old.regex != new.regex and group.regexes.get(old.regex) == 1:
        _drop_matches(topics, group, old.regex)
    return topics


def topics_without(
    group: ConsumerGroup, members: Collection[Member], regexes: Collection[str]
) -> dict[str, Subscribers]:
    """The topics with their subscribers when members, and patterns that only they used, are gone."""
    topics = dict(group.topics)
    for member in members:
        for name in member.topics:
            add_subscribers(topics, name, by_name=-1)
    for regex in regexes:
        _drop_matches(topics, group, regex)
    return topics


def regexes_after(group: ConsumerGroup, old: Member, new: Member) -> dict[str, int]:
    """The patterns, with how many members use each, when a member has become another."""
    regexes = dict(group.regexes)
    if (old.regex or None) != (new.regex or None):
        for regex, by in ((old.regex, -1), (new.regex, 1)):
            if regex:
                regexes[regex] = regexes.get(regex, 0) + by
    return {regex: number for regex, number in regexes.items() if number}


def unused_regexes(group: ConsumerGroup, members: Collection[Member]) -> list[str]:
    """The patterns that only these members use."""
    counts: dict[str, int] = {}
    for member in members:
        if member.regex:
            counts[member.regex] = counts.get(member.regex, 0) + 1
    return [regex for regex, number in counts.items() if group.regexes.get(regex) == number]


def _drop_matches(topics: dict[str, Subscribers], group: ConsumerGroup, regex: str) -> None:
    resolved = group.resolved.get(regex)
    for name in () if resolved is None else resolved.topics:
        add_subscribers(topics, name, by_regex=-1)
