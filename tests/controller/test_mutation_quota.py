"""The mutation quota: a number of partitions per second for a client, and more in a burst (KIP-599)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.context import Context
from kraftd.controller.quotas import mutation
from kraftd.controller.quotas.limits import limit_of
from kraftd.controller.quotas.mutation import MAX_BUCKETS, UNLIMITED, UNUSED_MS, MutationQuotas
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
RATE = {"controller_mutation_rate": 2.0}
ALICE = {(("user", "alice"),): RATE}


def taken(quotas: MutationQuotas, now_ms: int, *counts: int, strict: bool = True) -> tuple[list[bool], int]:
    """Charge one request; return which charges succeeded, and how many ms the client has to wait."""
    charge = quotas.charge(ALICE, "alice", "client", now_ms, strict=strict)
    successes = []
    for count in counts:
        try:
            charge.take(count)
            successes.append(True)
        except Refusal as refusal:
            assert refusal.code == THROTTLED
            successes.append(False)
    charge.commit()
    return successes, charge.throttle_ms


def test_a_burst_of_eleven_seconds_may_go_below_zero_once() -> None:
    quotas = MutationQuotas()
    assert taken(quotas, 0, 20, 10) == ([True, True], 0)  # 22 tokens: the second take leaves -8
    assert taken(quotas, 0, 1) == ([False], 4_000)
    assert taken(quotas, 3_999, 1) == ([False], 1)
    assert taken(quotas, 4_000, 1) == ([True], 0)


def test_a_bucket_fills_up_to_its_burst() -> None:
    quotas = MutationQuotas()
    taken(quotas, 0, 22)
    assert taken(quotas, 3_600_000, 22, 1) == ([True, True], 0)
    assert taken(quotas, 3_600_000, 1) == ([False], 500)


def test_a_debt_stays_when_its_quota_is_set_anew_and_is_paid_at_the_new_rate() -> None:
    quotas = MutationQuotas()
    taken(quotas, 0, 122)  # 100 below zero
    for rate, wait_ms in ((4.0, 25_000), (1.0, 100_000)):
        changed = {(("user", "alice"),): {"controller_mutation_rate": rate}}
        charge = quotas.charge(changed, "alice", "client", 0, strict=True)
        with pytest.raises(Refusal):
            charge.take(1)
        assert charge.throttle_ms == wait_ms
        charge.commit()


def test_a_debt_is_forgotten_an_hour_after_the_last_charge_that_was_made() -> None:
    quotas = MutationQuotas()
    taken(quotas, 0, 100_000)
    assert taken(quotas, UNUSED_MS // 2, 1)[0] == [False]  # refused: it does not count as a use
    assert taken(quotas, UNUSED_MS, 1)[0] == [False]
    assert taken(quotas, UNUSED_MS + 1, 22, 1) == ([True, True], 0)


def test_a_permissive_charge_takes_all_and_returns_the_time_to_wait() -> None:
    quotas = MutationQuotas()
    assert taken(quotas, 0, 22, strict=False) == ([True], 0)
    assert taken(quotas, 0, 2, strict=False) == ([True], 1_000)
    assert taken(quotas, 0, 2, strict=False) == ([True], 2_000)


def test_a_request_that_is_not_decided_is_not_charged() -> None:
    quotas = MutationQuotas()
    quotas.charge(ALICE, "alice", "client", 0, strict=True).take(1_000)
    assert taken(quotas, 0, 22) == ([True], 0)


@pytest.mark.parametrize(
    ("entity", "bucket"),
    [
        ({"user": "alice", "client-id": "c"}, ("alice", "c")),
        ({"user": "alice", "client-id": None}, ("alice", "c")),
        ({"user": "alice"}, ("alice", None)),
        ({"user": None, "client-id": "c"}, ("alice", "c")),
        ({"user": None, "client-id": None}, ("alice", "c")),
        ({"user": None}, ("alice", None)),
        ({"client-id": "c"}, (None, "c")),
        ({"client-id": None}, (None, "c")),
    ],
)
def test_the_most_specific_entity_counts_in_kafkas_order(
    entity: dict[str, str | None], bucket: tuple[Any, ...]
) -> None:
    order: list[dict[str, str | None]] = [
        {"user": "alice", "client-id": "c"},
        {"user": "alice", "client-id": None},
        {"user": "alice"},
        {"user": None, "client-id": "c"},
        {"user": None, "client-id": None},
        {"user": None},
        {"client-id": "c"},
        {"client-id": None},
    ]
    behind = order[order.index(entity) :]
    quotas = {
        tuple(sorted(one.items())): {"controller_mutation_rate": float(number)}
        for number, one in enumerate(behind, 1)
    }
    rate = "controller_mutation_rate"
    assert limit_of(quotas, rate, "alice", "c") == (bucket, 1.0)
    assert limit_of({tuple(sorted(entity.items())): {"request_percentage": 1.0}}, rate, "alice", "c") is None


def test_a_client_without_an_id_has_the_quota_of_its_user_only() -> None:
    key = "producer_byte_rate"
    of_clients = {(("client-id", None),): {key: 1.0}, (("client-id", None), ("user", "alice")): {key: 2.0}}
    assert limit_of(of_clients, key, "alice", "c") == (("alice", "c"), 2.0)
    assert limit_of(of_clients, key, "alice", "") is None
    assert limit_of({**of_clients, (("user", None),): {key: 3.0}}, key, "alice", "") == (("alice", None), 3.0)


def test_without_a_quota_nothing_is_counted() -> None:
    quotas = MutationQuotas()
    assert quotas.charge(ALICE, "bob", "c", 0, strict=True) is UNLIMITED
    assert quotas.charge({}, "alice", "c", 0, strict=True) is UNLIMITED
    assert repr(quotas) == "<MutationQuotas 0 buckets>"


def test_the_number_of_buckets_is_bounded() -> None:
    quotas = MutationQuotas()
    per_client = {(("client-id", None),): RATE}
    for number in range(MAX_BUCKETS + 500):
        charge = quotas.charge(per_client, "u", f"c{number}", number, strict=True)
        charge.take(1_000)
        charge.commit()
    assert repr(quotas) == f"<MutationQuotas {MAX_BUCKETS} buckets>"


class Charged:
    """A cluster whose requests are charged to a bucket of 22 tokens."""

    def __init__(self) -> None:
        self.cluster = Cluster().brokers(0, 1, 2)
        self.quotas = MutationQuotas()

    def decide(self, decision: Any, request: Any, version: int) -> Any:
        charge = self.quotas.charge(ALICE, "alice", "c", 0, strict=True)
        made = decision(self.cluster.ctx, request, version, charge=charge)
        made.after(0)
        self.cluster.apply(made.records)
        return made.answer


@pytest.fixture
def charged() -> Charged:
    return Charged()


def create(charged: Charged, *topics: CreatableTopic, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(list(topics), 1_000, validate_only)
    return charged.decide(create_topics, request, 7)


def test_topics_beyond_the_quota_are_refused_one_by_one(charged: Charged) -> None:
    answer = create(charged, *(CreatableTopic(name, 12, 1) for name in "abc"))
    assert [topic.error_code for topic in answer.topics] == [0, 0, THROTTLED]
    assert answer.throttle_time_ms == 1_000
    assert sorted(charged.cluster.image.topic_names()) == ["a", "b"]


def test_refused_and_validated_topics_are_charged_as_kafka_does(charged: Charged) -> None:
    create(charged, CreatableTopic("bad name", 1_000, 1), CreatableTopic("few", 1_000, 9))
    assert create(charged, CreatableTopic("a", 23, 1), validate_only=True).topics[0].error_code == 0
    assert create(charged, CreatableTopic("a", 1, 1)).topics[0].error_code == THROTTLED


def test_deletions_and_more_partitions_are_charged(charged: Charged) -> None:
    create(charged, CreatableTopic("a", 10, 1), CreatableTopic("b", 10, 1))
    request = CreatePartitionsRequest(
        [CreatePartitionsTopic("a", 15, None), CreatePartitionsTopic("b", 11, None)], 1_000
    )
    answer = charged.decide(create_partitions, request, 3)
    assert [result.error_code for result in answer.results] == [0, THROTTLED]
    assert answer.throttle_time_ms == 1_500
    deleted = charged.decide(delete_topics, DeleteTopicsRequest([DeleteTopicState("a")], (), 1_000), 6)
    assert [(one.name, one.error_code) for one in deleted.responses] == [("a", THROTTLED)]
    assert charged.cluster.image.topic_named("a") is not None


def test_the_burst_follows_from_the_configured_windows() -> None:
    cluster = Cluster(mutation_quota_window_ms=2_000, mutation_quota_window_count=3)
    ctx: Context = cluster.ctx
    charge = ctx.mutations.charge(ALICE, "alice", "c", 0, strict=True)
    assert repr(charge) == "<Charge of ('alice', None) 12.0 tokens at 2/s>"


def test_a_throttle_time_fits_into_the_answer() -> None:
    assert taken(MutationQuotas(), 0, 2**40, strict=False)[1] == 2**31 - 1


def test_an_exactly_empty_bucket_causes_no_wait() -> None:
    quotas = MutationQuotas()
    assert taken(quotas, 0, 22, strict=False) == ([True], 0)
    assert taken(quotas, 0, 1) == ([True], 0)


def test_full_buckets_are_forgotten_once_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "MAX_BUCKETS", 4)
    quotas = MutationQuotas()  # a bucket is full again 11 s after its last use, if it was not below zero

    def buckets() -> list[str | None]:
        return [client for _, client in quotas._tokens]

    for name, tokens, at_ms in (
        ("below", -1.0, 0),
        ("empty", 0.0, 1),
        ("full", 1.0, 9_000),
        ("not yet full", 1.0, 9_001),
    ):
        quotas.put((None, name), tokens, at_ms)
    assert buckets() == ["below", "empty", "full", "not yet full"]
    quotas.put((None, "new"), 5.0, 20_000)
    assert buckets() == ["below", "not yet full", "new"]
    for number in range(3):
        quotas.put((None, f"{number}"), -1.0, 20_000)
    assert buckets() == ["new", "0", "1", "2"]


def test_no_bucket_is_forgotten_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "MAX_BUCKETS", 2)
    quotas = MutationQuotas()
    quotas.put((None, "a"), 1.0, 0)
    quotas.put((None, "b"), 1.0, 60_000)
    assert list(quotas._tokens) == [(None, "a"), (None, "b")]
    quotas.put((None, "c"), 1.0, 60_001)
    assert list(quotas._tokens) == [(None, "b"), (None, "c")]


def test_a_permissive_charge_that_leaves_half_a_token_does_not_wait() -> None:
    quotas = MutationQuotas()
    taken(quotas, 0, 22)
    assert taken(quotas, 750, 1, strict=False) == ([True], 0)
