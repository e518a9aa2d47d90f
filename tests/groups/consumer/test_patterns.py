"""When topics are looked up by a group's patterns, in which steps, and what is recorded (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import asdict

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups import state as shard_state
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import patterns
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.patterns import LEAST_INTERVAL_MS, RESOLVING, Lookup, Matcher
from kraftd.groups.modern_group import Subscribers
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import encode_value
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from tests.groups.consumer.members import HEARTBEAT, Consumer, heartbeat
from tests.groups.desk import Desk

REFRESH_MS = 20_000
SUBSCRIPTION, EPOCH, PATTERN = "subscription", "epoch", "pattern"
KINDS: dict[type[Any], str] = {
    ConsumerGroupMemberMetadataKey: SUBSCRIPTION,
    ConsumerGroupMetadataKey: EPOCH,
    ConsumerGroupRegularExpressionKey: PATTERN,
}


class Subscribed(Desk):
    """A coordinator of one group, and what the group's patterns lead to."""

    def __init__(self, **topics: int) -> None:
        config = GroupConfig(
            group_consumer_assignment_interval_ms=0,
            group_consumer_regex_refresh_interval_ms=REFRESH_MS,
        )
        super().__init__(config, **(topics or {"orders": 1, "others": 1, "audit": 1}))
        self.read = 0

    @property
    def state(self) -> Any:
        return self.coordinator.shards[0].state

    @property
    def group(self) -> ConsumerGroup:
        group = self.state.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group

    def member(self, name: str, regex: str | None, topics: tuple[str, ...] | None = None) -> Consumer:
        member = Consumer(self.ask, name, topics=topics, regex=regex)
        assert member.join().error_code == 0
        return member

    def change(self, member: Consumer, regex: str) -> None:
        assert self.ask(heartbeat(member.member_id, member.epoch, regex=regex), HEARTBEAT).error_code == 0

    def is_looking(self) -> bool:
        return (RESOLVING, "g") in self.state.deadlines

    def written(self) -> list[str]:
        """What was written since the last call, of what members say, the epoch and patterns."""
        kinds = []
        for record in self.records()[self.read :]:
            kind = KINDS.get(type(record.key), "")
            gone = " gone" if record.value is None else ""
            kinds.append(f"{record.key.regular_expression}{gone}" if kind is PATTERN else kind + gone)
        self.read = len(self.records())
        return [kind for kind in kinds if kind]

    def topics_of(self) -> dict[str, set[str]]:
        return {regex: set(resolved.topics) for regex, resolved in self.group.resolved.items()}

    def check_hash(self) -> None:
        assert self.group.facts.metadata_hash == self.state.metadata_hash(self.group.topics)


def test_a_new_pattern_is_looked_up_at_once_and_known_to_the_next_member() -> None:
    desk = Subscribed()
    desk.member("m1", "o.*")
    assert desk.written() == [SUBSCRIPTION]
    rebalances = desk.state.counts.consumer_rebalances
    desk.wait(0)
    assert desk.is_looking() and not desk.topics_of()
    desk.wait(1)
    assert desk.written() == ["o.*", EPOCH] and not desk.is_looking()
    assert (desk.topics_of(), desk.group.facts.epoch) == ({"o.*": {"orders", "others"}}, 2)
    assert desk.state.counts.consumer_rebalances == rebalances + 1
    assert desk.group.topics == {"orders": Subscribers(0, 1), "others": Subscribers(0, 1)}
    desk.check_hash()
    desk.member("m2", "o.*")
    assert (desk.written(), desk.group.facts.epoch) == ([SUBSCRIPTION, EPOCH], 3)
    assert not desk.is_looking()


def test_a_pattern_that_is_not_known_yet_raises_no_epoch_again() -> None:
    desk = Subscribed()
    desk.member("m1", "o.*")
    desk.written()
    desk.member("m2", "o.*")  # m1's is being looked up
    assert desk.written() == [SUBSCRIPTION]
    assert desk.group.facts.epoch == 1


@pytest.mark.parametrize(
    ("regex", "other", "written"),
    [
        ("a.*", None, [SUBSCRIPTION, "o.* gone"]),
        ("a.*", "o.*", [SUBSCRIPTION]),
        ("", None, [SUBSCRIPTION, "o.* gone", EPOCH]),
        ("", "o.*", [SUBSCRIPTION, EPOCH]),
        ("o.*", None, []),
    ],
)
def test_a_pattern_goes_with_its_last_member(regex: str, other: str | None, written: list[str]) -> None:
    desk = Subscribed()
    first = desk.member("m1", "o.*", ("audit",))
    desk.wait(10)
    if other is not None:
        desk.member("m2", other)
    first.beat()
    desk.written()
    desk.change(first, regex)
    assert desk.written() == written
    assert set(desk.topics_of()) == (set() if "o.* gone" in written else {"o.*"})


def test_a_member_gives_up_what_its_new_pattern_is_not_known_to_match() -> None:
    desk = Subscribed()
    member = desk.member("m1", "o.*")
    desk.wait(10)
    member.beat()
    assert member.count() == 2
    member.beat(regex="or.*")
    assert (member.count(), desk.group.facts.epoch) == (0, 2)


@pytest.mark.parametrize(
    ("waited_ms", "change", "is_looking"),
    [
        (LEAST_INTERVAL_MS, "topic", False),
        (LEAST_INTERVAL_MS + 1, "topic", True),
        (LEAST_INTERVAL_MS + 1, "", False),
        (LEAST_INTERVAL_MS + 1, "partitions", False),
        (LEAST_INTERVAL_MS, "pattern", False),
        (LEAST_INTERVAL_MS + 1, "pattern", True),
        (LEAST_INTERVAL_MS + 1, "no pattern", False),
        (LEAST_INTERVAL_MS + 1, "same pattern", False),
        (REFRESH_MS, "", False),
        (REFRESH_MS + 1, "", True),
        (REFRESH_MS + 1, "no pattern", False),
    ],
)
def test_patterns_are_looked_up_again_by_their_age_and_what_is_new(
    waited_ms: int, change: str, is_looking: bool
) -> None:
    desk = Subscribed()
    began_ms = desk.now_ms
    member = desk.member("m1", "o.*", ("audit",))
    desk.wait(10)
    member.beat()
    desk.wait(began_ms + waited_ms - desk.now_ms)
    if change == "topic":
        desk.topics.change("new", 1)
    elif change == "partitions":
        desk.topics.change("orders", 2)
    regex = {"pattern": "a.*", "no pattern": "", "same pattern": "o.*"}.get(change)
    assert not desk.is_looking()
    assert desk.ask(heartbeat("m1", member.epoch, regex=regex), HEARTBEAT).error_code == 0
    assert desk.is_looking() is is_looking


def test_a_pattern_that_came_too_soon_after_the_last_is_looked_up_later() -> None:
    desk = Subscribed()
    desk.member("m1", "o.*")
    desk.wait(10)
    second = desk.member("m2", "a.*")
    assert not desk.is_looking()
    desk.wait(LEAST_INTERVAL_MS)
    second.beat()
    assert desk.is_looking()
    desk.wait(10)
    assert desk.topics_of() == {"o.*": {"orders", "others"}, "a.*": {"audit"}}


def test_a_lookup_that_finds_what_was_known_raises_no_epoch() -> None:
    desk = Subscribed()
    member = desk.member("m1", "o.*", ("orders",))
    desk.wait(10)
    member.beat()
    desk.written()
    desk.wait(REFRESH_MS)
    member.beat()
    desk.wait(10)
    assert desk.written() == ["o.*"]
    assert desk.group.resolved["o.*"].resolved_ms == desk.now_ms - 10
    assert desk.group.topics["orders"] == Subscribers(1, 1)
    member.beat()
    desk.wait(REFRESH_MS)
    member.beat()
    desk.topics.change("orders", 2)  # while topics are being looked up
    desk.wait(10)
    assert desk.written() == ["o.*", EPOCH]
    desk.check_hash()
    assert not desk.group.needs_refresh(desk.topics.hashes_version())  # at the next heartbeat


def test_a_pattern_that_finds_only_topics_that_are_named_raises_the_epoch() -> None:
    """Other members may not be subscribed to them."""
    desk = Subscribed()
    desk.member("m1", "o.*", ("orders", "others"))
    desk.written()
    desk.wait(10)
    assert desk.written() == ["o.*", EPOCH]
    assert desk.group.topics == {"orders": Subscribers(1, 1), "others": Subscribers(1, 1)}


@pytest.mark.parametrize("named", [(), ("orders",), ("gone", "new-o"), ("orders", "others", "new-o")])
def test_topics_that_come_and_go_are_counted_as_their_records_count_them(
    named: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Subscribed(**dict.fromkeys(("orders", "others", "gone", "audit"), 1))
    first = desk.member("m1", ".*o.*", named)
    desk.member("m2", "a.*|g.*|others")
    before: list[dict[str, Subscribers]] = []
    end = Lookup.end

    def counted(lookup: Lookup) -> Outcome:
        before.append(lookup.topics_after(desk.group))
        return end(lookup)

    monkeypatch.setattr(Lookup, "end", counted)
    for new, old in (("other", "gone"), ("new-o", "orders"), ("orders", "audit"), ("x", "other")):
        desk.wait(10)
        assert desk.group.topics == before[-1]
        desk.check_hash()
        desk.topics.change(new, 1)
        if old in desk.topics.partitions:
            desk.topics.change(old, None)
        desk.wait(LEAST_INTERVAL_MS)
        first.beat()
    desk.wait(10)
    assert desk.group.topics == before[-1]
    assert len(before) == 5
    matched = {name for names in desk.topics_of().values() for name in names}
    assert {name for name, by in desk.group.topics.items() if by.by_regex} == matched
    assert {name for name, by in desk.group.topics.items() if by.by_name} == set(named)


def test_topics_of_a_group_that_is_gone_meanwhile_are_not_recorded() -> None:
    desk = Subscribed()
    member = desk.member("m1", "o.*")
    member.leave()
    desk.written()
    desk.wait(10)
    assert desk.written() == []
    desk.state.timeline.remove(desk.state.groups, "g")
    lookup = Lookup(desk.state, Call("", 1), "g", ["o.*"])
    assert lookup.end() == Outcome()


def steps_of(lookup: Lookup) -> tuple[list[str], Outcome]:
    """The steps of a lookup, each of which schedules the next, and what it ends with."""
    steps: list[str] = []
    due: list[Callable[[], Outcome]] = [lookup.run_slice]

    def go_on(action: Callable[[], Outcome]) -> Outcome:
        due.append(action)
        return Outcome()

    lookup.go_on = go_on  # type: ignore[method-assign]
    outcome = Outcome()
    while due:
        action = due.pop()
        steps.append(action.__name__)
        outcome = action()
    return steps, outcome


@pytest.mark.parametrize(
    ("names", "few", "is_known", "looking", "hashing"),
    [(3, 3, False, 1, 0), (5, 4, False, 2, 3), (5, 4, True, 2, 0), (8, 4, False, 3, 4), (8, 8, False, 3, 0)],
)
def test_a_lookup_of_many_topics_is_made_in_short_steps(
    names: int, few: int, is_known: bool, looking: int, hashing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MATCHES_A_SLICE", 4)
    for module in (patterns, shard_state):
        monkeypatch.setattr(module, "FEW_TOPICS", few)
    monkeypatch.setattr(shard_state, "TOPICS_A_SLICE", 4)
    topics = {f"o{number}": 1 for number in range(names)}
    desk = Subscribed(**topics)
    desk.member("m1", "o.*")
    if is_known:
        desk.state.metadata_hash(frozenset(topics))
    lookup = Lookup(desk.state, Call("", 1), "g", ["o.*"])
    steps, outcome = steps_of(lookup)
    last = ["hash_slice"] * hashing + ["encode_all", "end"] if hashing else []
    assert steps == ["run_slice"] * looking + last
    assert lookup.found == {"o.*": set(topics)}
    pattern, epoch = outcome.records
    assert (pattern.encoded is not None) is (hashing > 0)
    assert pattern.value is not None and set(asdict(pattern.value)["topics"]) == set(topics)
    assert (pattern.encoded or b"") in (b"", encode_value(pattern.value, pattern.version))
    assert not desk.state.lacks_hash(frozenset(topics)) or names <= few
    assert epoch.value is not None and asdict(epoch.value)["epoch"] == 2


def test_each_step_of_a_lookup_has_its_own_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MATCHES_A_SLICE", 2)
    desk = Subscribed(o1=1, o2=1, o3=1, o4=1)
    desk.member("m1", "o.*")
    for _ in range(2):
        desk.wait(1)
        assert desk.is_looking() and not desk.topics_of()
    desk.wait(1)
    assert desk.topics_of() == {"o.*": {"o1", "o2", "o3", "o4"}} and not desk.is_looking()


def test_only_topics_that_the_caller_may_describe_are_found() -> None:
    desk = Subscribed()
    desk.member("m1", "o.*")
    asked = []

    def allows(operation: AclOperation, type: AclResourceType, name: str) -> bool:
        asked.append((operation, type, name))
        return name != "orders"

    lookup = Lookup(desk.state, Call("", 1, allows=allows), "g", ["o.*", "x"])
    steps_of(lookup)
    assert lookup.found == {"o.*": {"others"}, "x": set()}
    describe = AclOperation.DESCRIBE, AclResourceType.TOPIC
    assert asked == [(*describe, "orders"), (*describe, "others")]


def test_a_slice_has_fewer_names_with_more_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {count: Matcher(["a"] * count) for count in (0, 1, 3, 7, 8, 16)}
    assert [(one.together is None, one.names_a_slice()) for one in counts.values()] == [
        (True, 500), (True, 500), (True, 166), (True, 71), (False, 500), (False, 250),
    ]  # fmt: skip
    monkeypatch.setattr(patterns, "MATCHES_A_SLICE", 2)
    assert counts[3].names_a_slice() == 1


def test_patterns_in_one_automaton_are_found_by_their_places(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Matcher(["(", *"abcdefgh"]).together
    assert together is not None and sorted(together.Match("c")) == [2, 8]
    monkeypatch.setattr(patterns, "MAX_TOGETHER_BYTES", 1)
    assert Matcher([*"abcdefgh"]).together is None
    assert capfd.readouterr().err == ""  # RE2 would write there that a pattern is not valid
