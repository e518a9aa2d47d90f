"""ACLs are added once, found by every form of filter, and removed by it (KIP-290)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.controller.acls.create import create_acls
from kraftd.controller.acls.delete import _check_count, delete_acls
from kraftd.controller.acls.describe import describe_acls
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.metadata.state import AclState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
LITERAL, PREFIXED = AclPatternType.LITERAL, AclPatternType.PREFIXED
ANYTHING = (1, None, 1, None, None, 1, 1)


def acl(
    name: str = "orders",
    *,
    kind: int = TOPIC,
    pattern: int = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: int = AclOperation.READ,
    permission: int = AclPermission.ALLOW,
) -> AclCreation:
    return AclCreation(kind, name, pattern, principal, host, operation, permission)


def create(cluster: Cluster, *acls: AclCreation) -> list[tuple[int, str | None]]:
    answer = cluster.decide(create_acls, CreateAclsRequest(list(acls)), 3)
    return [(result.error_code, result.error_message) for result in answer.results]


def delete(cluster: Cluster, *filters: tuple[Any, ...]) -> Any:
    request = DeleteAclsRequest([DeleteAclsFilter(*one) for one in filters])
    return cluster.decide(delete_acls, request, 3).filter_results


def describe(cluster: Cluster, *filter: Any) -> set[tuple[Any, ...]]:
    answer = cluster.decide(describe_acls, DescribeAclsRequest(*filter), 3)
    found = [
        (one.resource_type, one.resource_name, one.pattern_type, *entry_of(entry))
        for one in answer.resources
        for entry in one.acls
    ]
    assert len(set(found)) == len(found)
    return set(found)


def entry_of(entry: Any) -> tuple[Any, ...]:
    return entry.principal, entry.host, entry.operation, entry.permission_type


def names(cluster: Cluster, *filter: Any) -> set[str]:
    return {one[1] for one in describe(cluster, *filter)}


def test_an_acl_that_is_requested_again_is_not_added_again() -> None:
    cluster = Cluster()
    assert create(cluster, acl(), acl(), acl(principal="User:bob")) == [(0, "")] * 3
    assert create(cluster, acl()) == [(0, "")]
    assert len(cluster.image.acls) == 2
    assert cluster.image.has_acl(AclState(2, "orders", 3, "User:alice", "*", 3, 3))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (acl("other", kind=CLUSTER), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (acl(""), "Invalid empty resource name"),
        (acl(kind=AclResourceType.ANY), "Invalid resourceType ANY"),
        (acl(kind=0), "Invalid resourceType UNKNOWN"),
        (acl(kind=99), "Invalid resourceType UNKNOWN"),
        (acl(pattern=AclPatternType.MATCH), "Invalid patternType MATCH"),
        (acl(pattern=AclPatternType.ANY), "Invalid patternType ANY"),
        (acl(pattern=-1), "Invalid patternType UNKNOWN"),
        (acl(operation=AclOperation.ANY), "Invalid operation ANY"),
        (acl(operation=0), "Invalid operation UNKNOWN"),
        (acl(permission=AclPermission.ANY), "Invalid permissionType ANY"),
        (
            acl(principal="alice"),
            "Could not parse principal from `alice` (no colon is present separating the principal type from "
            "the principal name)",
        ),
    ],
)
def test_an_invalid_acl_is_refused_and_the_others_are_added(wrong: AclCreation, message: str) -> None:
    cluster = Cluster()
    answers = create(cluster, wrong, acl())
    assert answers == [(ErrorCode.INVALID_REQUEST, message), (0, "")]
    assert len(cluster.image.acls) == 1


def test_more_than_10000_acls_at_once_are_refused_and_none_is_added() -> None:
    cluster = Cluster()
    with pytest.raises(Refusal) as refused:
        create(cluster, *(acl(f"t{number}") for number in range(10_001)))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert not cluster.image.acls
    assert create(cluster, *[acl()] * 10_001) == [(0, "")] * 10_001


@pytest.fixture
def filled() -> Cluster:
    cluster = Cluster()
    create(
        cluster,
        acl("orders"),
        acl("ord", pattern=PREFIXED),
        acl("*"),
        acl("orders", pattern=PREFIXED, principal="User:bob", host="10.0.0.1"),
        acl("orders", kind=GROUP, permission=AclPermission.DENY, operation=AclOperation.ALL),
        acl("kafka-cluster", kind=CLUSTER, operation=AclOperation.ALTER),
    )
    return cluster


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        (ANYTHING, 6),
        ((TOPIC, None, 1, None, None, 1, 1), 4),
        ((TOPIC, "orders", 1, None, None, 1, 1), 2),
        ((TOPIC, "orders", LITERAL, None, None, 1, 1), 1),
        ((TOPIC, "orders", PREFIXED, None, None, 1, 1), 1),
        ((TOPIC, "orders", AclPatternType.MATCH, None, None, 1, 1), 4),
        ((TOPIC, "ordinary", AclPatternType.MATCH, None, None, 1, 1), 2),
        ((TOPIC, "*", LITERAL, None, None, 1, 1), 1),
        ((TOPIC, None, PREFIXED, None, None, 1, 1), 2),
        ((TOPIC, None, AclPatternType.MATCH, None, None, 1, 1), 4),
        ((1, None, 1, "User:bob", None, 1, 1), 1),
        ((1, None, 1, None, "10.0.0.1", 1, 1), 1),
        ((1, None, 1, None, None, AclOperation.ALTER, 1), 1),
        ((1, None, 1, None, None, 1, AclPermission.DENY), 1),
        ((1, "absent", 1, None, None, 1, 1), 0),
    ],
)
def test_a_filter_finds_and_removes_what_it_matches(
    filled: Cluster, filter: tuple[Any, ...], count: int
) -> None:
    found = describe(filled, *filter)
    assert len(found) == count
    (result,) = delete(filled, filter)
    assert result.error_code == 0
    assert {
        (one.resource_type, one.resource_name, one.pattern_type, *entry_of(one))
        for one in result.matching_acls
    } == found
    assert len(filled.image.acls) == 6 - count
    assert describe(filled, *filter) == set()


@pytest.mark.parametrize(
    ("place", "field"), [(0, "resource type"), (2, "pattern type"), (5, "operation"), (6, "permission type")]
)
def test_a_filter_with_an_unknown_number_is_refused_and_others_are_not(
    filled: Cluster, place: int, field: str
) -> None:
    for number in (0, 77, -1):
        wrong = (*ANYTHING[:place], number, *ANYTHING[place + 1 :])
        with pytest.raises(Refusal) as refused:
            describe(filled, *wrong)
        assert refused.value.code == ErrorCode.INVALID_REQUEST
        assert refused.value.message == f"There is no {field} {number}."
    first, second = delete(filled, wrong, (TOPIC, "*", LITERAL, None, None, 1, 1))
    assert (first.error_code, len(second.matching_acls)) == (ErrorCode.INVALID_REQUEST, 1)


def test_an_acl_that_two_filters_match_is_removed_once_and_in_both_results(filled: Cluster) -> None:
    first, second = delete(filled, ANYTHING, ANYTHING)
    assert len(first.matching_acls) == len(second.matching_acls) == 6
    assert {(one.error_code, one.error_message) for one in first.matching_acls} == {(ErrorCode.NONE, None)}
    assert not filled.image.acls


def test_more_than_10000_acls_are_not_removed_at_once() -> None:
    cluster = Cluster()
    for start in (0, 6_000):
        create(cluster, *(acl(f"t{number}") for number in range(start, start + 6_000)))
    with pytest.raises(Refusal) as refused:
        delete(cluster, ANYTHING)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert refused.value.message == "Cannot remove more than 10000 acls in a single delete operation."
    assert len(cluster.image.acls) == 12_000


def test_a_filter_that_matches_acls_beyond_the_10000_removed_refuses_all() -> None:
    cluster = Cluster()
    create(cluster, *(acl(f"t{number}") for number in range(10_000)))
    narrow = (TOPIC, "t0", LITERAL, None, None, 1, 1)
    with pytest.raises(Refusal, match="more than 10000 acls"):
        delete(cluster, ANYTHING, narrow)
    assert len(cluster.image.acls) == 10_000
    delete(cluster, narrow, ANYTHING)
    assert not cluster.image.acls


@pytest.mark.parametrize(("removed", "named"), [(9_999, 9_999), (1, 100_000)])
def test_the_largest_allowed_number_of_acls_is_accepted(removed: int, named: int) -> None:
    _check_count(removed, named)
    with pytest.raises(Refusal):
        _check_count(removed + 1, named + 1)


def test_many_filters_cannot_make_an_unbounded_answer() -> None:
    cluster = Cluster()
    create(cluster, *(acl(f"t{number}") for number in range(9_000)))
    with pytest.raises(Refusal, match="more than 100000 ACLs together"):
        delete(cluster, *[ANYTHING] * 12)


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b"])
ACLS = st.builds(
    AclState,
    st.sampled_from([2, 3, 5]),
    NAMES,
    st.sampled_from([3, 4]),
    st.sampled_from(["User:a", "User:b"]),
    st.sampled_from(["*", "h"]),
    st.sampled_from([3, 4]),
    st.sampled_from([2, 3]),
)


@settings(max_examples=200, deadline=None)
@given(known=st.lists(ACLS, max_size=20), changes=st.lists(st.tuples(ACLS, st.booleans()), max_size=20))
def test_has_acl_finds_an_acl_while_an_equal_one_exists_also_after_undo(
    known: list[AclState], changes: list[tuple[AclState, bool]]
) -> None:
    cluster = Cluster()
    image = cluster.image
    for one in known:
        create(cluster, AclCreation(*(getattr(one, name) for name in one.__struct_fields__)))
    before = dict(image.acls)
    image.mark()
    offset = image.offset
    for one, remove in changes:
        values = [getattr(one, name) for name in one.__struct_fields__]
        if remove:
            delete(cluster, tuple(values))
        else:
            create(cluster, AclCreation(*values))
        assert image.has_acl(one) is not remove
    image.undo_to(offset)
    assert image.acls == before
    for one, _ in changes:
        assert image.has_acl(one) is (one in before.values())


def test_a_refusal_quotes_at_most_200_characters_of_a_bad_principal() -> None:
    ((code, text),) = create(Cluster(), acl(principal="u" * 300))
    assert (code, text) == (
        ErrorCode.INVALID_REQUEST,
        f"Could not parse principal from `{'u' * 200}` "
        "(no colon is present separating the principal type from the principal name)",
    )
