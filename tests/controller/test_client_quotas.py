"""Client quotas are changed wholly or not at all, entity by entity (KIP-546, KIP-612)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kraftd.controller.quotas.alter import alter_client_quotas
from kraftd.controller.quotas.describe import DEFAULT, EXACT, SPECIFIED, describe_client_quotas
from kraftd.ground.refusal import Refusal
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

INVALID = ErrorCode.INVALID_REQUEST
Entity = dict[str, str | None]


def entry(entity: Entity, **ops: float | None) -> EntryData:
    named = [EntityData(kind, name) for kind, name in entity.items()]
    return EntryData(named, [OpData(key, value or 0.0, value is None) for key, value in ops.items()])


def alter(cluster: Cluster, *entries: EntryData, validate_only: bool = False) -> list[tuple[int, Any]]:
    request = AlterClientQuotasRequest(list(entries), validate_only)
    answer = cluster.decide(alter_client_quotas, request, 1)
    return [(one.error_code, one.error_message) for one in answer.entries]


def test_a_quota_is_set_changed_and_removed() -> None:
    cluster = Cluster()
    alice: Entity = {"user": "alice", "client-id": None}
    assert alter(cluster, entry(alice, producer_byte_rate=1000.0, request_percentage=0.5)) == [(0, None)]
    key = (("client-id", None), ("user", "alice"))
    assert cluster.image.quotas == {key: {"producer_byte_rate": 1000.0, "request_percentage": 0.5}}
    applied = len(cluster.applied)
    alter(cluster, entry(alice, producer_byte_rate=1000.0, consumer_byte_rate=None))
    assert len(cluster.applied) == applied, "nothing changed, so nothing is written"
    alter(cluster, entry(alice, producer_byte_rate=None, request_percentage=None))
    assert cluster.image.quotas == {}


def test_an_ip_has_a_connection_rate_and_combines_with_no_other_entity() -> None:
    cluster = Cluster()
    assert alter(cluster, entry({"ip": "10.0.0.1"}, connection_creation_rate=5.0)) == [(0, None)]
    assert alter(cluster, entry({"ip": None}, connection_creation_rate=7.0)) == [(0, None)]
    assert alter(cluster, entry({"ip": "::1"}, producer_byte_rate=7.0))[0][0] == INVALID
    assert (
        alter(cluster, entry({"ip": "10.0.0.1", "user": "a"}, connection_creation_rate=1.0))[0][0] == INVALID
    )
    ((code, message),) = alter(cluster, entry({"ip": "no.such.host"}, connection_creation_rate=1.0))
    assert (code, message) == (
        INVALID,
        "no.such.host is not a valid IP; kraftd looks up no host names, give its address",
    )
    assert len(cluster.image.quotas) == 2


@pytest.mark.parametrize(
    ("entity", "ops", "message"),
    [
        ({}, {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
        ({"group": "a"}, {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: group"),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
        ({"user": "a"}, {"byte_rate": 1.0}, "Invalid configuration key byte_rate"),
        (
            {"user": "a"},
            {"connection_creation_rate": 1.0},
            "Invalid configuration key connection_creation_rate",
        ),
        ({"user": "a"}, {"producer_byte_rate": -1.0}, "Quota producer_byte_rate must be greater than 0"),
        ({"user": "a"}, {"request_percentage": math.nan}, "Quota request_percentage must be greater than 0"),
        ({"user": "a"}, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
        (
            {"user": "a"},
            {"producer_byte_rate": math.inf},
            "Proposed value for producer_byte_rate is too large for a LONG.",
        ),
        (
            {"ip": "::1"},
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_an_invalid_quota_is_refused_and_nothing_of_it_is_kept(
    entity: Entity, ops: dict[str, float], message: str
) -> None:
    cluster = Cluster()
    good: Entity = {"user": "good"}
    answers = alter(
        cluster, entry(entity, consumer_byte_rate=1.0, **ops), entry(good, consumer_byte_rate=1.0)
    )
    if entity.get("ip"):
        answers = alter(cluster, entry(entity, **ops), entry(good, consumer_byte_rate=1.0))
    assert answers == [(INVALID, message), (0, None)]
    assert list(cluster.image.quotas) == [(("user", "good"),)]


def test_an_entity_named_twice_is_answered_once_and_not_changed() -> None:
    cluster = Cluster()
    user: Entity = {"user": "a"}
    answers = alter(
        cluster,
        entry(user, producer_byte_rate=1.0),
        entry(user, consumer_byte_rate=1.0),
        entry({"client-id": "c"}, consumer_byte_rate=1.0),
    )
    assert answers == [(INVALID, "The request names user a more than once"), (0, None)]
    assert list(cluster.image.quotas) == [(("client-id", "c"),)]


def test_a_key_named_twice_refuses_its_entity() -> None:
    cluster = Cluster()
    twice = EntryData([EntityData("user", "a")], [OpData("request_percentage", 1.0)] * 2)
    assert alter(cluster, twice) == [(INVALID, "A quota key is named twice for user a")]
    assert not cluster.image.quotas


def test_validate_only_answers_the_same_and_changes_no_quota() -> None:
    cluster = Cluster()
    assert alter(cluster, entry({"user": "a"}, request_percentage=1.0), validate_only=True) == [(0, None)]
    assert not cluster.image.quotas


@pytest.fixture
def filled() -> Cluster:
    cluster = Cluster()
    for entity in ({"user": "a"}, {"user": None}, {"user": "a", "client-id": "c"}, {"client-id": "c"}):
        alter(cluster, entry(dict(entity), request_percentage=1.0))
    alter(cluster, entry({"ip": "::1"}, connection_creation_rate=1.0))
    return cluster


def describe(cluster: Cluster, *components: tuple[str, int, str | None], strict: bool = False) -> list[Any]:
    request = DescribeClientQuotasRequest([ComponentData(*one) for one in components], strict)
    entries = cluster.decide(describe_client_quotas, request, 1).entries
    return sorted(
        sorted((part.entity_type, part.entity_name or "<default>") for part in one.entity) for one in entries
    )


def test_a_filter_matches_entities_that_have_its_components(filled: Cluster) -> None:
    assert len(describe(filled)) == 5
    assert describe(filled, strict=True) == []
    assert describe(filled, ("user", EXACT, "a")) == [[("client-id", "c"), ("user", "a")], [("user", "a")]]
    assert describe(filled, ("user", EXACT, "a"), strict=True) == [[("user", "a")]]
    assert describe(filled, ("user", DEFAULT, None)) == [[("user", "<default>")]]
    assert len(describe(filled, ("user", SPECIFIED, None))) == 3
    assert describe(filled, ("ip", EXACT, "::1")) == [[("ip", "::1")]]


@pytest.mark.parametrize(
    ("components", "code", "text"),
    [
        ([("", EXACT, "a")], INVALID, "Invalid empty entity type."),
        *[
            (
                [("user", first, name), ("user", DEFAULT, None)],
                INVALID,
                "Entity type user cannot appear more than once in the filter.",
            )
            for first, name in ((EXACT, "a"), (SPECIFIED, None))
        ],
        ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group"),
        ([("user", EXACT, None)], INVALID, "The filter of user asks for an exact name and gives none."),
        *[
            (
                [("user", match, "a")],
                INVALID,
                "The filter of user gives a name where its match type has none.",
            )
            for match in (DEFAULT, SPECIFIED)
        ],
        ([("user", 3, None)], INVALID, "Unknown match type 3"),
        (
            [("ip", EXACT, "::1"), ("user", EXACT, "a")],
            INVALID,
            "Invalid entity filter component combination: ip goes with no user or client-id.",
        ),
    ],
)
def test_an_invalid_filter_of_quotas_is_refused(
    filled: Cluster, components: list[tuple[str, int, str | None]], code: ErrorCode, text: str
) -> None:
    with pytest.raises(Refusal) as refused:
        describe(filled, *components)
    assert (refused.value.code, refused.value.message) == (code, text)


@pytest.mark.parametrize(
    ("rate", "code"), [(0.0, INVALID), (-1.0, INVALID), (math.nan, INVALID), (5e-324, 0)]
)
def test_a_quota_is_greater_than_zero(rate: float, code: int) -> None:
    assert alter(Cluster(), entry({"user": "alice"}, request_percentage=rate))[0][0] == code


def test_a_refusal_names_the_parts_of_the_entity() -> None:
    both: Entity = {"user": None, "client-id": "c"}
    answers = alter(Cluster(), *[entry(both, producer_byte_rate=1.0)] * 2)
    assert answers == [(INVALID, "The request names client-id c, user <default> more than once")]


@pytest.mark.parametrize(
    ("entity", "key", "value", "code"),
    [
        ({"ip": "localhost"}, "connection_creation_rate", 1.0, 0),
        ({"ip": "LOCALHOST"}, "connection_creation_rate", 1.0, INVALID),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 2.0**31 - 1, 0),
        ({"user": "a"}, "producer_byte_rate", 2.0**63, 0),  # the largest LONG, as a double
        ({"user": "a"}, "producer_byte_rate", 2.0**64, INVALID),
        ({"user": "a"}, "producer_byte_rate", 1e-6, 0),
        ({"user": "a"}, "producer_byte_rate", 5.0 + 1e-7, 0),
        ({"user": "a"}, "producer_byte_rate", 5.0 + 1e-5, INVALID),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(
    entity: Entity, key: str, value: float, code: int
) -> None:
    assert alter(Cluster(), entry(entity, **{key: value}))[0][0] == code


def test_an_address_with_a_user_is_refused_with_the_reason() -> None:
    text = "Invalid quota entity combination, an ip goes with no user or client-id"
    entity: Entity = {"ip": "10.0.0.1", "user": "a"}
    assert alter(Cluster(), entry(entity, connection_creation_rate=1.0)) == [(INVALID, text)]


def test_a_removed_quota_is_written_without_a_value() -> None:
    cluster = Cluster()
    alter(cluster, entry({"user": "a"}, request_percentage=2.0))
    alter(cluster, entry({"user": "a"}, request_percentage=None))
    changes = [(one.message.value, one.message.remove) for one in cluster.applied[-2:]]
    assert changes == [(2.0, False), (0.0, True)]
