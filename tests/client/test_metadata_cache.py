"""A client's metadata never goes back, even if brokers give stale, reordered or partial answers."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftd.client.metadata_cache import Leader, MetadataCache
from kraftd.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftd.wire.error_code import ErrorCode

OLD, NEW = b"o" * 16, b"n" * 16
TOPICS = ("orders", "payments")
BROKERS = (1, 2, 3)


def answer(topic_id: bytes, epochs: dict[int, int], name: str = "orders") -> MetadataResponse:
    """A metadata answer about one topic, with the given leader epochs of its partitions."""
    partitions = [
        MetadataResponsePartition(0, index, epoch % 3 + 1, epoch, (1, 2, 3), (1, 2, 3))
        for index, epoch in epochs.items()
    ]
    brokers = [MetadataResponseBroker(one, "h", 9000 + one) for one in BROKERS]
    return MetadataResponse(
        brokers=brokers, topics=[MetadataResponseTopic(0, name, topic_id, False, partitions)]
    )


def test_a_lower_leader_epoch_is_refused_and_the_leader_stays() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5, 1: 3}), 1)
    result = cache.take(answer(OLD, {0: 4, 1: 9}), 2)
    assert result.accepted == ()
    assert result.refused[0].why == "partition 0 has leader epoch 4, 5 was seen before"
    assert (cache.leader("orders", 0), cache.leader("orders", 1)) == (Leader(3, 5), Leader(1, 3))


def test_an_answer_without_a_partition_that_the_topic_has_is_refused() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5, 1: 3}), 1)
    assert cache.take(answer(OLD, {0: 6}), 2).refused[0].why == "partition 1 is missing"
    assert cache.take(answer(OLD, {}), 2).refused[0].why
    assert cache.leader("orders", 1) == Leader(1, 3)


def test_a_recreated_topic_may_have_lower_epochs_and_fewer_partitions() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5, 1: 3}), 1)
    assert cache.take(answer(NEW, {0: 0}), 2).accepted == ("orders",)
    assert cache.leader("orders", 0) == Leader(1, 0) and cache.leader("orders", 1) is None


def test_a_stale_broker_does_not_bring_back_a_replaced_topic() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5}), 1)
    cache.take(answer(NEW, {0: 0}), 2)
    for _ in range(3):
        assert cache.take(answer(OLD, {0: 5}), 1).refused
    assert cache.topics["orders"].id == NEW


def test_a_former_id_returns_from_a_broker_that_had_its_successor() -> None:
    cache = MetadataCache()
    cache.take(answer(NEW, {0: 0}), 1)
    cache.take(answer(OLD, {0: 5}), 2)  # stale, but not recognizable as such
    assert cache.take(answer(NEW, {0: 0}), 1).refused and cache.take(answer(NEW, {0: 0}), 3).refused
    assert cache.take(answer(NEW, {0: 0}), 2).accepted  # it has caught up
    assert cache.topics["orders"].id == NEW


def test_a_former_id_returns_if_the_broker_of_its_successor_is_gone() -> None:
    cache = MetadataCache()
    cache.take(answer(NEW, {0: 0}), 1)
    cache.take(answer(OLD, {0: 5}), 2)
    other = answer(NEW, {0: 0}, "payments")
    del other.brokers[1]
    cache.take(other, 1, ["payments"])
    assert cache.take(answer(NEW, {0: 0}), 3).accepted


@pytest.mark.parametrize("deleted", [False, True])
def test_no_number_of_lagging_brokers_brings_back_a_deleted_topic(deleted: bool) -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5}), 1)
    if deleted:
        gone = MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "orders")
        cache.take(MetadataResponse(brokers=answer(OLD, {}).brokers, topics=[gone]), 3)
        assert "orders" not in cache.topics
    assert cache.take(answer(NEW, {0: 0}), 3).accepted
    for _ in range(3):
        assert cache.take(answer(OLD, {0: 5}), 1).refused and cache.take(answer(OLD, {0: 6}), 2).refused
        assert cache.take(answer(NEW, {0: 0}), 3).accepted
    assert cache.take(answer(NEW, {0: 0}), 1).accepted


def test_a_refused_answer_changes_neither_nodes_nor_topics() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5}), 1)
    cache.take(answer(NEW, {0: 5}, "payments"), 1, ["payments"])
    known = dict(cache.nodes)
    stale = answer(OLD, {0: 4})
    stale.brokers, stale.controller_id = [MetadataResponseBroker(9, "h", 1)], 9
    stale.topics.append(MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "payments"))
    assert [one.topic for one in cache.take(stale, 2, TOPICS).refused] == ["orders"]
    assert (cache.nodes, cache.controller_id) == (known, -1)
    assert set(cache.topics) == {"orders", "payments"}


def test_an_epoch_of_a_topic_that_is_not_cached_refuses_older_metadata() -> None:
    cache = MetadataCache()
    assert cache.saw_epoch("orders", 1, 7)  # such as that of a committed offset
    assert cache.take(answer(OLD, {0: 0, 1: 6}), 1).refused
    assert cache.take(answer(OLD, {0: 0}), 1).refused[0].why == "partition 1 is missing"
    assert cache.nodes and not cache.topics
    assert cache.take(answer(OLD, {0: 0, 1: 7}), 2).accepted
    assert cache.take(answer(OLD, {0: 0, 1: 6}), 1).refused
    assert cache.take(answer(NEW, {0: 0}), 2).accepted  # another topic starts anew


def test_a_deleted_topic_does_not_come_back_with_lower_epochs() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5}), 1)
    deleted = MetadataResponse(topics=[MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "orders")])
    cache.take(deleted, 2)
    assert cache.leader("orders", 0) is None
    assert cache.take(answer(OLD, {0: 4}), 1).refused
    assert cache.take(answer(OLD, {0: 5}), 1).accepted


def test_an_epoch_seen_in_records_makes_older_metadata_stale() -> None:
    cache = MetadataCache()
    cache.take(answer(OLD, {0: 5}), 1)
    assert cache.saw_epoch("orders", 0, 7)
    assert cache.take(answer(OLD, {0: 6}), 1).refused
    assert cache.take(answer(OLD, {0: 7}), 2).accepted
    assert not cache.saw_epoch("orders", 0, 7)


def test_answers_of_old_brokers_without_ids_and_epochs_are_accepted() -> None:
    cache = MetadataCache()
    cache.take(answer(bytes(16), {0: -1}), 1)
    assert cache.take(answer(bytes(16), {0: -1}), 2).accepted == ("orders",)


class Brokers(RuleBasedStateMachine):
    """Metadata that changes, brokers that learn it late, and answers that arrive in any order.

    The cache's leader epochs never decrease, and every value in it was once true. Once all brokers agree and
    have answered, the cache agrees with them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cache = MetadataCache()
        self.ids = 0
        first = {name: (self._new_id(), {0: 0, 1: 0}) for name in TOPICS}
        self.history: list[dict[str, tuple[bytes, dict[int, int]]]] = [first]
        self.at = dict.fromkeys(BROKERS, 0)
        self.under_way: list[tuple[int, MetadataResponse]] = []
        self.highest: dict[tuple[bytes, int], int] = {}

    def _new_id(self) -> bytes:
        self.ids += 1
        return self.ids.to_bytes(16, "big")

    def _answer(self, version: int, without: int | None = None) -> MetadataResponse:
        merged = MetadataResponse()
        for name, (topic_id, epochs) in self.history[version].items():
            known = {index: epoch for index, epoch in epochs.items() if index != without}
            one = answer(topic_id, known, name)
            merged.brokers = one.brokers
            merged.topics += one.topics
        return merged

    def _next(self, name: str, state: tuple[bytes, dict[int, int]]) -> None:
        self.history.append({**self.history[-1], name: state})

    @rule(name=st.sampled_from(TOPICS), index=st.integers(0, 3))
    def a_leader_moves(self, name: str, index: int) -> None:
        topic_id, epochs = self.history[-1][name]
        if index in epochs:
            self._next(name, (topic_id, {**epochs, index: epochs[index] + 1}))

    @rule(name=st.sampled_from(TOPICS))
    def a_partition_is_added(self, name: str) -> None:
        topic_id, epochs = self.history[-1][name]
        if len(epochs) < 4:
            self._next(name, (topic_id, {**epochs, len(epochs): 0}))

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_is_made_anew(self, name: str) -> None:
        self._next(name, (self._new_id(), {0: 0}))

    @rule(broker=st.sampled_from(BROKERS), steps=st.integers(1, 5))
    def a_broker_catches_up(self, broker: int, steps: int) -> None:
        self.at[broker] = min(self.at[broker] + steps, len(self.history) - 1)

    @rule(broker=st.sampled_from(BROKERS), without=st.none() | st.integers(0, 3))
    def a_broker_is_asked(self, broker: int, without: int | None) -> None:
        self.under_way.append((broker, self._answer(self.at[broker], without)))

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 100))
    def an_answer_arrives(self, which: int) -> None:
        broker, found = self.under_way.pop(which % len(self.under_way))
        self.cache.take(found, broker)

    @invariant()
    def leader_epochs_never_go_back(self) -> None:
        for topic in self.cache.topics.values():
            for index, partition in topic.partitions.items():
                key = (topic.id, index)
                assert partition.leader.epoch >= self.highest.get(key, -1)
                self.highest[key] = partition.leader.epoch

    @invariant()
    def what_is_believed_was_true_once(self) -> None:
        for topic in self.cache.topics.values():
            of_id = [
                epochs
                for topic_id, epochs in (one[topic.name] for one in self.history)
                if topic_id == topic.id
            ]
            for index, partition in topic.partitions.items():
                assert any(epochs.get(index) == partition.leader.epoch for epochs in of_id)

    def teardown(self) -> None:
        """If brokers agree, the cache accepts their answers after at most two rounds."""
        for broker in (*BROKERS, *BROKERS):
            self.cache.take(self._answer(len(self.history) - 1), broker)
        for name, (topic_id, epochs) in self.history[-1].items():
            topic = self.cache.topics[name]
            assert topic.id == topic_id
            assert {index: one.leader.epoch for index, one in topic.partitions.items()} == epochs


TestBrokers = Brokers.TestCase
TestBrokers.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_memory_is_bounded_by_the_number_of_topics(seed: int) -> None:
    random, cache = Random(seed), MetadataCache()
    for _ in range(300):
        cache.take(answer(random.randbytes(16), {0: random.randrange(9)}), random.choice(BROKERS))
    assert len(cache._ids["orders"].former) <= 8 and len(cache.topics) == 1
