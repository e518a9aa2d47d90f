"""Members of a consumer group in any order, with failures: one owner, an end of changes, no lost commit.

Each of the three is checked against a defect that is planted into the coordinator.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import changing, owners, reconciling
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import HEARTBEAT, Consumer, heartbeat
from tests.groups.desk import Desk
from tests.groups.requests import COMMIT, commit, fetched

QUICK = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SESSION_MS = 45_000
indexes = st.integers(0, 5)


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Consumers believe what they were answered; those that are silent for a session believe nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=4, audit=2)
        self.orders = self.desk.topics.topic_id("orders")
        self.consumers: list[Consumer] = []
        self.heard_ms: dict[str, int] = {}
        self.committed: dict[int, int] = {}
        self.reading: dict[str, set[tuple[bytes, int]]] = {}
        self.names = 0
        self.next_offset = 1

    def pick(self, index: int) -> Consumer:
        return self.consumers[index % len(self.consumers)]

    def took(self, one: Consumer, answer: Any) -> None:
        """A consumer that was fenced gives up all that it has, and will join again."""
        if answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            one.epoch, one.has = 0, {}
            self.reading[one.member_id] = set()
        elif answer.error_code == 0:
            self.heard_ms[one.member_id] = self.desk.now_ms
            self.reading.setdefault(one.member_id, set()).update(self.places(one))

    @staticmethod
    def places(one: Consumer) -> set[tuple[bytes, int]]:
        return {(topic, index) for topic, some in one.has.items() for index in some}

    def send(self, one: Consumer) -> None:
        """A consumer stops reading what it has given up before it reports that."""
        self.reading[one.member_id] = self.places(one) if one.epoch > 0 else set()
        self.took(one, one.beat() if one.epoch > 0 else one.join())

    @precondition(lambda self: len(self.consumers) < 5)
    @rule(topics=st.sampled_from([("orders",), ("orders", "audit")]), is_static=st.booleans())
    def arrive(self, topics: tuple[str, ...], is_static: bool) -> None:
        self.names += 1
        instance = f"i{self.names}" if is_static else None
        self.consumers.append(Consumer(self.desk.ask, f"m{self.names}", topics=topics, instance=instance))
        self.send(self.consumers[-1])

    @precondition(lambda self: self.consumers)
    @rule(index=indexes)
    def beat(self, index: int) -> None:
        self.send(self.pick(index))

    @precondition(lambda self: self.consumers)
    @rule(index=indexes)
    def beat_without_report(self, index: int) -> None:
        one = self.pick(index)
        if one.epoch > 0:
            instance = one.subscription["instance"]
            request = heartbeat(one.member_id, one.epoch, instance=instance)
            self.took(one, one.take(self.desk.ask(request, HEARTBEAT)))

    @precondition(lambda self: self.consumers)
    @rule(index=indexes)
    def leave(self, index: int) -> None:
        one = self.pick(index)
        if one.epoch > 0:
            one.leave()
            self.consumers.remove(one)

    @precondition(lambda self: self.consumers)
    @rule(index=indexes)
    def start_anew(self, index: int) -> None:
        """A static member goes away for a moment, and comes back with another member id."""
        one = self.pick(index)
        instance = one.subscription["instance"]
        if one.epoch > 0 and instance is not None and one.leave(-2).error_code == 0:
            self.names += 1
            self.consumers.remove(one)
            successor = Consumer(self.desk.ask, f"m{self.names}", **one.subscription)
            self.consumers.append(successor)
            self.send(successor)

    @rule(time_ms=st.sampled_from([100, 20_000, 50_000]))
    def wait(self, time_ms: int) -> None:
        self.desk.wait(time_ms)
        for one in self.consumers:
            if self.desk.now_ms - self.heard_ms.get(one.member_id, 0) >= SESSION_MS:
                one.has = {}
                self.reading[one.member_id] = set()

    @precondition(lambda self: self.desk.topics.partitions["orders"] < 7)
    @rule()
    def add_partition(self) -> None:
        self.desk.topics.change("orders", self.desk.topics.partitions["orders"] + 1)

    @precondition(lambda self: self.consumers)
    @rule(index=indexes)
    def fail(self, index: int) -> None:
        """A heartbeat's records are not written; the consumer tries again."""
        self.desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
        self.send(self.pick(index))
        self.desk.failure = None

    @rule()
    def move(self) -> None:
        self.desk.reload()
        for one in self.consumers:  # every session begins anew
            self.heard_ms[one.member_id] = self.desk.now_ms

    @precondition(lambda self: self.consumers)
    @rule(index=indexes, partition=st.integers(0, 6), age=st.integers(0, 2))
    def commit(self, index: int, partition: int, age: int) -> None:
        one = self.pick(index)
        if one.epoch <= 0 or partition >= self.desk.topics.partitions["orders"]:
            return
        request: OffsetCommitRequest = commit(
            self.next_offset, max(0, one.epoch - age), one.member_id, partition=partition
        )
        self.next_offset += 1
        error = self.desk.ask(request, COMMIT).topics[0].partitions[0].error_code
        if error == 0:
            self.committed[partition] = self.next_offset - 1
            if age:
                owner = self.owner_at_coordinator(partition)
                assert owner == one.member_id, f"{one} committed a partition of {owner} in an old epoch"

    def owner_at_coordinator(self, partition: int) -> str | None:
        group = self.desk.coordinator.shards[0].state.groups["g"]
        assert isinstance(group, ConsumerGroup) and self.orders is not None
        return group.owners.owner(self.orders, partition)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [place for one in self.consumers for place in self.reading.get(one.member_id, ())]
        assert len(owned) == len(set(owned)), self.consumers

    @invariant()
    def no_commit_is_lost(self) -> None:
        for partition, offset in self.committed.items():
            assert fetched(self.desk, partition=partition) == offset

    def teardown(self) -> None:
        """With no further change, every partition soon has an owner, and no member moves."""
        for _ in range(30):
            for one in self.consumers:
                self.send(one)
            self.desk.wait(10_000)
        names = {name for one in self.consumers for name in one.subscription["topics"]}
        wanted = sorted(
            (self.desk.topics.topic_id(name), index)
            for name in names
            for index in range(self.desk.topics.partitions[name])
        )
        has = [(topic, index) for one in self.consumers for topic, some in one.has.items() for index in some]
        assert sorted(has) == wanted, self.consumers


def run(examples: int = QUICK.max_examples) -> None:
    run_state_machine_as_test(ConsumerGroupMachine, settings=settings(QUICK, max_examples=examples))


def test_members_in_any_order() -> None:
    run(60)


def test_members_with_many_partitions_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are divided in slices, and noted as members with many are."""
    monkeypatch.setattr(reconciling, "MANY", 0)
    monkeypatch.setattr(reconciling, "PARTITIONS_A_SLICE", 2)
    monkeypatch.setattr(owners, "MANY", 1)
    run(30)


def always(value: Any) -> Any:
    return lambda *_, **__: value


DEFECTS: dict[str, tuple[Any, str, Any]] = {
    "partitions are given before they are given up": (
        Reconciling,
        "released",
        lambda self, topic_id, indexes: indexes,
    ),
    "partitions are taken for given up at once": (Reconciling, "still_owns", always(False)),
    "no new target is computed": (changing, "new_target", always(None)),
    "epochs of partitions do not count": (ConsumerGroup, "check_commit", always(None)),
}


@pytest.mark.parametrize("defect", list(DEFECTS))
def test_a_planted_defect_is_noticed(monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    place, name, wrong = DEFECTS[defect]
    monkeypatch.setattr(place, name, wrong)
    with pytest.raises(AssertionError):
        run()
