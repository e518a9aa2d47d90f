"""Decisions of the StandardAuthorizer, by example."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.metadata.state import AclState
from kraftd.security.acl_index import AclIndex
from kraftd.security.authorizer import AuthorizerNotReady, StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings, parse_super_users
from kraftd.security.principals import Principal, parse_principal
from kraftd.security.sorted_names import SortedNames
from tests.security.random_acls import Case

ALICE = Principal("User", "alice")
HOST = "127.0.0.1"
TOPIC = AclResourceType.TOPIC


def acl(
    name: str,
    operation: AclOperation,
    principal: str = "User:alice",
    *,
    prefixed: bool = False,
    deny: bool = False,
    host: str = "*",
) -> AclState:
    return AclState(
        TOPIC,
        name,
        AclPatternType.PREFIXED if prefixed else AclPatternType.LITERAL,
        principal,
        host,
        operation,
        AclPermission.DENY if deny else AclPermission.ALLOW,
    )


def authorizer(*acls: AclState, **settings: bool) -> StandardAuthorizer:
    made = StandardAuthorizer(AuthorizerSettings(super_users=frozenset({"User:root"}), **settings))
    made.begin_load()
    made.change((), acls)
    made.end_load()
    return made


def allows(made: StandardAuthorizer, operation: AclOperation, name: str, who: Principal = ALICE) -> bool:
    return made.allows(who, HOST, operation, TOPIC, name)


def test_a_denial_wins_over_every_allowance() -> None:
    made = authorizer(
        acl("*", AclOperation.ALL), acl("pay", AclOperation.ALL, "User:*", prefixed=True, deny=True)
    )
    assert allows(made, AclOperation.READ, "orders")
    assert not allows(made, AclOperation.READ, "payments")


def test_allowed_operations_imply_description_and_denied_ones_do_not() -> None:
    made = authorizer(acl("a", AclOperation.READ), acl("b", AclOperation.ALTER_CONFIGS))
    assert allows(made, AclOperation.DESCRIBE, "a")
    assert allows(made, AclOperation.DESCRIBE_CONFIGS, "b")
    assert not allows(made, AclOperation.DESCRIBE, "b")
    made = authorizer(acl("*", AclOperation.ALL), acl("a", AclOperation.READ, deny=True))
    assert allows(made, AclOperation.DESCRIBE, "a")


def test_super_users_match_by_type_and_need_no_acls() -> None:
    made = StandardAuthorizer(AuthorizerSettings(super_users=parse_super_users("User:root; User:x:y")))
    assert allows(made, AclOperation.ALTER, "t", Principal("User", "x:y"))
    assert allows(made, AclOperation.ALTER, "t", Principal("User", "root", token_authenticated=True))
    with pytest.raises(AuthorizerNotReady):
        allows(made, AclOperation.ALTER, "t", Principal("Group", "root"))


def test_without_any_acl_of_a_resource_the_default_applies() -> None:
    made = authorizer(acl("owned", AclOperation.READ, "User:bob"), allow_if_no_acl=True)
    assert allows(made, AclOperation.WRITE, "free")
    assert not allows(made, AclOperation.WRITE, "owned")
    assert not allows(authorizer(), AclOperation.WRITE, "free")


def test_hosts_are_compared_as_text() -> None:
    made = authorizer(acl("a", AclOperation.READ, host="10.0.0.1"))
    assert made.allows(ALICE, "10.0.0.1", AclOperation.READ, TOPIC, "a")
    assert not made.allows(ALICE, "10.0.0.2", AclOperation.READ, TOPIC, "a")


def test_an_acl_that_was_added_twice_holds_until_both_are_removed() -> None:
    one = acl("a", AclOperation.READ)
    made = authorizer(one)
    made.change([], [one])
    made.change([one], [])
    assert allows(made, AclOperation.READ, "a")
    made.change([one], [])
    assert not allows(made, AclOperation.READ, "a")
    assert len(made.index) == 0


def test_the_audit_names_the_rule_behind_a_decision() -> None:
    made = authorizer(acl("pay", AclOperation.ALL, prefixed=True), acl("pay-x", AclOperation.READ, deny=True))
    ask = (ALICE, HOST, AclOperation.READ, TOPIC)
    assert made.reason(*ask, "payments") == "ALLOW ALL for User:alice from * on PREFIXED pay"
    assert made.reason(*ask, "pay-x") == "DENY READ for User:alice from * on LITERAL pay-x"
    assert made.reason(*ask, "orders") == "no ACL allows it"
    assert made.reason(Principal("User", "root"), *ask[1:], "orders") == "super user"


def test_an_invalid_principal_is_refused() -> None:
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")
    with pytest.raises(ValueError, match="User:alice"):
        parse_super_users("User:a,User;alice")


def test_one_name_among_many_prefixes_is_found_in_few_steps() -> None:
    names = [f"team-{number:05}." for number in range(100_000)]
    index = AclIndex(acl(name, AclOperation.READ, prefixed=True) for name in names)
    steps: Counter[str] = Counter()

    class Counted(list):  # type: ignore[type-arg]
        def __getitem__(self, at):  # type: ignore[no-untyped-def]
            steps["read"] += 1
            return super().__getitem__(at)

    kept = index._prefixes[TOPIC]
    kept._firsts = Counted(kept._firsts)
    kept._pieces = Counted(map(Counted, kept._pieces))
    assert index.match("User:alice", HOST, AclOperation.READ, TOPIC, "team-70707.orders").allowed
    assert 0 < steps["read"] < 100  # of the searches, too


def test_names_are_found_in_order_after_any_additions_and_removals() -> None:
    random, kept, names = Random(5), SortedNames(), set[str]()
    for _ in range(20_000):
        name = "".join(random.choices("abc", k=random.randrange(12)))
        if name in names and random.random() < 0.6:
            kept.remove(name)
            names.remove(name)
        elif name not in names:
            kept.add(name)
            names.add(name)
        if random.random() < 0.01:
            assert list(kept) == sorted(names)
            text = "".join(random.choices("abc", k=6))
            assert kept.last_up_to(text) == max((one for one in names if one <= text), default=None)
            assert kept.last_before(text) == max((one for one in names if one < text), default=None)
    assert len(kept._pieces) > 3  # so that pieces were divided, and some became empty
    for name in sorted(names):
        kept.remove(name)
    assert (len(kept), kept.last_up_to("c")) == (0, None)


def test_an_index_changed_one_by_one_equals_one_made_at_once() -> None:
    for seed in range(60):
        case = Case(seed, 80, 40)
        changed, random = AclIndex(), Random(seed)
        kept = list(case.acls)
        for entry in random.sample(kept, len(kept)):
            changed.add(entry)
        for entry in random.sample(kept, len(kept) // 2):
            changed.remove(entry)
            kept.remove(entry)
        made = AclIndex(kept)
        assert (changed._literal, changed._prefixed) == (made._literal, made._prefixed)
        prefixes = (
            {type: list(names) for type, names in one._prefixes.items() if names} for one in (changed, made)
        )
        assert next(prefixes) == next(prefixes)
