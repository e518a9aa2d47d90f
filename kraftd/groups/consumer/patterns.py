"""Subscriptions by regular expressions, with RE2's rules: the topics that match are looked up, and recorded.

All patterns of a group are looked up together, at most every ten seconds: when there is a new one, when
topics were created, or after `group.consumer.regex.refresh.interval.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from re import Pattern
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.records import Resolved, epoch_record, regex_record, regex_tombstone
from kraftd.groups.consumer.subscriptions import regexes_after
from kraftd.groups.modern_group import BY_ONE_REGEX, NOBODY, Subscribers
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, encode_value
from kraftd.groups.state import FEW_TOPICS, ShardState
from kraftd.wire.error_code import ErrorCode

LEAST_INTERVAL_MS = 10_000
MATCHES_A_SLICE = 500
SEVERAL = 8  # patterns: more are matched together
TOGETHER_A_SLICE = 8 * MATCHES_A_SLICE
MAX_TOGETHER_BYTES = 16 << 20
RESOLVING = "resolving"  # the kind of the deadline of the next slice
NO_TOPICS = Resolved(frozenset(), 0, 0)
# What RE2/J, with which Kafka compiles patterns, calls the errors of RE2.
_ERRORS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class RegexChange(Struct, frozen=True):
    """What a heartbeat changes about patterns. is_resolved: the topics of the new one are known already."""

    records: list[CoordinatorRecord] = []
    is_changed: bool = False
    is_resolved: bool = False


def change_of_regex(
    state: ShardState, call: Call, group: ConsumerGroup, member: Member, updated: Member
) -> RegexChange:
    """Note the pattern of a member, and look up topics if it is time. Raises Refusal if it is not valid."""
    old, new = member.regex or None, updated.regex or None
    change = RegexChange()
    must_look = False
    if member.regex != updated.regex:
        records = []
        if old is not None and group.regexes.get(old) == 1:
            records.append(regex_tombstone(group.group_id, old))
        if new is None:
            is_resolved = old is not None
        elif new in group.regexes:
            is_resolved = new in group.resolved
        else:
            compiled(new)
            must_look, is_resolved = True, False
        change = RegexChange(records, True, is_resolved)
    if must_look or group.regexes:
        look_up_if_due(state, call, group, regexes_after(group, member, updated), must_look)
    return change


def look_up_if_due(
    state: ShardState, call: Call, group: ConsumerGroup, regexes: dict[str, int], must_look: bool
) -> None:
    """Look up the topics of a group's patterns, unless that was done just now or is under way."""
    key = RESOLVING, group.group_id
    last = next(iter(group.resolved.values()), None)
    if key in state.deadlines or not regexes:
        return
    if last is not None and state.now_ms <= last.resolved_ms + LEAST_INTERVAL_MS:
        return
    is_old = last is None or (
        last.image_version < state.metadata.names_version()
        or state.now_ms > last.resolved_ms + state.config.group_consumer_regex_refresh_interval_ms
    )
    if must_look or is_old or len(regexes) != len(group.resolved):
        lookup = Lookup(state, call, group.group_id, list(regexes))
        state.deadlines.schedule(key, state.now_ms + 1, lookup.run_slice)


def compiled(regex: str) -> Pattern[str]:
    """The pattern; Refusal if RE2 does not know it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        found: Pattern[str] = re2.compile(regex, options)
    except re2.error as problem:
        reason = problem.args[0] if problem.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_kafkas(text)}."
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
    return found


def _kafkas(text: str) -> str:
    """An error of RE2, which names a part of the pattern behind it, in Kafka's words."""
    error, _, part = text.partition(": ")
    if error == "invalid perl operator" and part.startswith(("(?<", "(?P<")):
        error = "invalid named capture group"
    return _ERRORS.get(error, error)


class Matcher:
    """Which of some patterns match a name.

    Those that cannot be compiled, which another broker may have taken, match nothing.
    """

    def __init__(self, regexes: list[str]) -> None:
        self.patterns: list[tuple[str, Pattern[str]]] = []
        for regex in regexes:
            with suppress(Refusal):
                self.patterns.append((regex, compiled(regex)))
        self.together = None if len(self.patterns) < SEVERAL else self._together()

    def _together(self) -> Any:
        """All patterns in one automaton, and last one that matches all names; None if that gets too large."""
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_TOGETHER_BYTES
        found = re2.Set.FullMatchSet(options)
        for regex, _ in self.patterns:
            found.Add(regex)
        found.Add("(?s).*")
        try:
            found.Compile()
        except re2.error:
            return None
        return found

    def names_a_slice(self) -> int:
        most = MATCHES_A_SLICE if self.together is None else TOGETHER_A_SLICE
        return most // max(1, len(self.patterns)) or 1

    def matching(self, name: str) -> list[str]:
        """The patterns that match a name."""
        if self.together is not None:
            places = self.together.Match(name)
            if len(self.patterns) in places:  # else the automaton had not enough memory for this name
                return [self.patterns[at][0] for at in places if at < len(self.patterns)]
        return [regex for regex, pattern in self.patterns if pattern.fullmatch(name)]


class Lookup:
    """Finds the topics that match patterns, of those that the caller may describe, slice by slice."""

    def __init__(self, state: ShardState, call: Call, group_id: str, regexes: list[str]) -> None:
        self.state = state
        self.call = call
        self.group_id = group_id
        self.began_ms = state.now_ms
        self.version = state.metadata.version()
        self.names: Iterator[str] = iter(state.metadata.names())
        self.matcher = Matcher(regexes)
        self.found: dict[str, set[str]] = {regex: set() for regex in regexes}
        self.hashing: Slices[None] | None = None
        self.encoded: dict[str, CoordinatorRecord] = {}

    def run_slice(self) -> Outcome:
        most = self.matcher.names_a_slice()
        some = list(islice(self.names, most))
        for name in some:
            matching = self.matcher.matching(name)
            if matching and self.may_see(name):
                for regex in matching:
                    self.found[regex].add(name)
        return self.go_on(self.run_slice) if len(some) == most else self.hash_slice()

    def go_on(self, action: Callable[[], Outcome]) -> Outcome:
        self.state.deadlines.schedule((RESOLVING, self.group_id), self.state.now_ms + 1, action)
        return Outcome()

    def hash_slice(self) -> Outcome:
        """Compute the hash of many topics, slice by slice, before `end` asks for it."""
        group = self.state.groups.get(self.group_id)
        if self.hashing is None and isinstance(group, ConsumerGroup):
            names = frozenset(self.topics_after(group))
            if len(names) > FEW_TOPICS and self.state.lacks_hash(names):
                self.hashing = self.state.hash_in_slices(names)
                return self.go_on(self.hash_slice)
        for _ in self.hashing or ():
            return self.go_on(self.hash_slice)
        return self.end() if self.hashing is None else self.go_on(self.encode_all)

    def encode_all(self) -> Outcome:
        """Encode the records of what was found, before `end` writes them."""
        self.encoded = {regex: self.record_of(regex) for regex in self.found}
        self.encoded = {
            regex: replace(record, encoded=encode_value(record.value, record.version))
            for regex, record in self.encoded.items()
            if record.value is not None
        }
        return self.go_on(self.end)

    def record_of(self, regex: str) -> CoordinatorRecord:
        """The record of what was found."""
        found = Resolved(frozenset(self.found[regex]), self.version, self.began_ms)
        return regex_record(self.group_id, regex, found)

    def topics_after(self, group: ConsumerGroup) -> dict[str, Subscribers]:
        """The topics with their subscribers once what was found is noted."""
        topics = dict(group.topics)
        for regex, names in self.found.items():
            if regex in group.regexes:
                before = group.resolved.get(regex, NO_TOPICS).topics
                _count(topics, before - names, -1)
                _count(topics, names - before, 1)
        return topics

    def may_see(self, name: str) -> bool:
        return self.call.allows_quietly(AclOperation.DESCRIBE, AclResourceType.TOPIC, name)

    def end(self) -> Outcome:
        """Note what was found; if it is something else than before, the group's epoch is raised."""
        state = self.state
        group = state.groups.get(self.group_id)
        if not isinstance(group, ConsumerGroup):
            return Outcome()
        records = []
        must_raise = False
        for regex, names in self.found.items():
            if regex not in group.regexes:
                continue
            before = group.resolved.get(regex, NO_TOPICS)
            must_raise = must_raise or before.topics != names
            records.append(self.encoded.get(regex) or self.record_of(regex))
        metadata_hash = state.metadata_hash(self.topics_after(group))
        if must_raise or metadata_hash != group.facts.metadata_hash:
            epoch = group.facts.epoch + 1
            records.append(epoch_record(self.group_id, epoch, metadata_hash))
            state.counts.consumer_rebalances += 1
            group.refreshed(state.metadata.hashes_version(), epoch)
        return Outcome(records)


def _count(topics: dict[str, Subscribers], names: AbstractSet[str], by: int) -> None:
    for name in names:
        if name not in topics:  # it was not matched before
            topics[name] = BY_ONE_REGEX
            continue
        by_name, by_regex = topics.get(name, NOBODY)
        topics[name] = Subscribers(by_name, by_regex + by)
        if not any(topics[name]):
            del topics[name]
