"""Decisions of the StandardAuthorizer, by example."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.ground import pace
from kraftd.ground.pace import at_once
from kraftd.metadata.state import AclState
from kraftd.security.acls.acl_index import AclIndex
from kraftd.security.acls.hosts import canonical_host
from kraftd.security.acls.sorted_names import SortedNames
from kraftd.security.authorizer import AuthorizerNotReady, StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings, parse_super_users
from kraftd.security.principals import Principal, parse_principal
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
    loaded = StandardAuthorizer(AuthorizerSettings(super_users=frozenset({"User:root"}), **settings))
    loaded.begin_load()
    loaded.change((), acls)
    loaded.end_load()
    return loaded


def allows(
    rules: StandardAuthorizer, operation: AclOperation, name: str, principal: Principal = ALICE
) -> bool:
    return rules.allows(principal, HOST, operation, TOPIC, name)


def test_a_denial_wins_over_every_allowance() -> None:
    rules = authorizer(
        acl("*", AclOperation.ALL), acl("pay", AclOperation.ALL, "User:*", prefixed=True, deny=True)
    )
    assert allows(rules, AclOperation.READ, "orders")
    assert not allows(rules, AclOperation.READ, "payments")


def test_allowed_operations_imply_description_and_denied_ones_do_not() -> None:
    rules = authorizer(acl("a", AclOperation.READ), acl("b", AclOperation.ALTER_CONFIGS))
    assert allows(rules, AclOperation.DESCRIBE, "a")
    assert allows(rules, AclOperation.DESCRIBE_CONFIGS, "b")
    assert not allows(rules, AclOperation.DESCRIBE, "b")
    rules = authorizer(acl("*", AclOperation.ALL), acl("a", AclOperation.READ, deny=True))
    assert allows(rules, AclOperation.DESCRIBE, "a")


def test_super_users_match_by_type_and_need_no_acls() -> None:
    rules = StandardAuthorizer(AuthorizerSettings(super_users=parse_super_users("User:root; User:x:y")))
    assert allows(rules, AclOperation.ALTER, "t", Principal("User", "x:y"))
    assert allows(rules, AclOperation.ALTER, "t", Principal("User", "root", token_authenticated=True))
    with pytest.raises(AuthorizerNotReady):
        allows(rules, AclOperation.ALTER, "t", Principal("Group", "root"))


def test_without_any_acl_of_a_resource_the_default_applies() -> None:
    rules = authorizer(acl("owned", AclOperation.READ, "User:bob"), allow_if_no_acl=True)
    assert allows(rules, AclOperation.WRITE, "free")
    assert not allows(rules, AclOperation.WRITE, "owned")
    assert not allows(authorizer(), AclOperation.WRITE, "free")


def test_only_the_host_of_an_acl_is_allowed() -> None:
    rules = authorizer(acl("a", AclOperation.READ, host="10.0.0.1"))
    assert rules.allows(ALICE, "10.0.0.1", AclOperation.READ, TOPIC, "a")
    assert not rules.allows(ALICE, "10.0.0.2", AclOperation.READ, TOPIC, "a")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::7", "2001:db8:0:0:0:0:0:7"),
        ("2001:DB8:0:0:0:0:0:0007", "2001:db8:0:0:0:0:0:7"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::1%2", "fe80:0:0:0:0:0:0:1%2"),
        ("::1.2.3.4", "0:0:0:0:0:0:102:304"),
        ("*", "*"),
        ("broker:a", "broker:a"),
    ],
)
def test_a_denial_holds_for_every_way_to_write_its_host(written: str, canonical: str) -> None:
    assert canonical_host(written) == canonical_host(canonical) == canonical
    rules = authorizer(acl("a", AclOperation.READ), acl("a", AclOperation.READ, host=written, deny=True))
    assert not rules.allows(ALICE, canonical, AclOperation.READ, TOPIC, "a")


def test_acls_that_write_one_host_in_two_ways_hold_until_both_are_removed() -> None:
    one, two = (acl("a", AclOperation.READ, host=host) for host in ("::7", "0:0:0:0:0:0:0:7"))
    for first, second in ((one, two), (two, one)):
        rules = authorizer(one, two)
        rules.change([first], [])
        assert rules.allows(ALICE, "0:0:0:0:0:0:0:7", AclOperation.READ, TOPIC, "a")
        rules.change([second], [])
        assert not rules.allows(ALICE, "0:0:0:0:0:0:0:7", AclOperation.READ, TOPIC, "a")


def may_on_any(index: AclIndex, principal: str, host: str, operation: int, resource_type: int) -> bool:
    return at_once(index.may_on_any(principal, host, operation, resource_type))


def lines_run(action: Callable[[], object]) -> int:
    """How many lines of Python an action runs."""
    count = 0

    def trace(_frame: object, event: str, _: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        action()
    finally:
        sys.settrace(None)
    return count


def test_a_question_about_any_resource_costs_the_same_with_many_acls() -> None:
    costs = []
    for count in (10, 2000):
        index = AclIndex(
            acl(f"t{number}", operation, principal)
            for number in range(count)
            for operation, principal in (
                (AclOperation.READ, f"User:u{number}"),
                (AclOperation.READ, "User:alice"),
                (AclOperation.WRITE, "User:bob"),
            )
        )
        for principal in ("User:alice", "User:bob", "User:stranger"):
            ask = partial(may_on_any, index, principal, HOST, AclOperation.WRITE, TOPIC)
            costs.append(lines_run(ask))
    assert costs[:3] == costs[3:]


def test_an_answer_about_any_resource_is_found_again_until_acls_change() -> None:
    denied = [acl(f"t{number}", AclOperation.READ, deny=True) for number in range(500)]
    index = AclIndex([acl(f"t{number}", AclOperation.READ) for number in range(500)] + denied)
    ask = partial(may_on_any, index, "User:alice", HOST, AclOperation.READ, TOPIC)
    first, again = lines_run(ask), lines_run(ask)
    assert first > 500 > 150 > again
    assert not ask()
    index.remove(denied[7])
    assert ask()
    index.add(denied[7])
    assert not ask()


def test_an_answer_about_any_resource_outlives_changes_that_cannot_change_it() -> None:
    names = [f"t{number}" for number in range(500)]
    denials = [acl(name, AclOperation.READ, deny=True) for name in names]
    index = AclIndex([acl(name, AclOperation.READ) for name in names] + denials)
    ask = partial(may_on_any, index, "User:alice", HOST, AclOperation.READ, TOPIC)
    assert not ask()
    for change in (
        lambda: index.add(acl("t1", AclOperation.READ, "User:bob")),
        lambda: index.add(acl("t1", AclOperation.WRITE)),
        lambda: index.remove(acl("t2", AclOperation.READ)),
        lambda: index.add(acl("another", AclOperation.READ, deny=True)),
    ):
        change()
        assert lines_run(ask) < 150 and not ask()
    index.add(acl("new", AclOperation.READ))
    assert ask()
    index.add(acl("new-2", AclOperation.READ))
    index.remove(denials[9])
    assert lines_run(ask) < 150 and ask()
    for name in ("new", "new-2", "t9"):
        index.remove(acl(name, AclOperation.READ))
    assert not ask()


def test_random_changes_never_leave_a_stale_answer_about_any_resource() -> None:
    rng = Random(7)
    held: list[AclState] = []
    index = AclIndex()
    principals = "User:alice", "User:bob", "User:*"
    for _ in range(1_500):
        if held and rng.random() < 0.5:
            index.remove(held.pop(rng.randrange(len(held))))
        else:
            operation = rng.choice((AclOperation.READ, AclOperation.ALL))
            kind = {"deny": rng.random() < 0.5, "prefixed": rng.random() < 0.3}
            one = acl(rng.choice(("a", "ab", "b")), operation, rng.choice(principals), **kind)
            held.append(one)
            index.add(one)
        for principal in principals[:2]:
            question = principal, HOST, AclOperation.READ, TOPIC
            assert may_on_any(index, *question) == may_on_any(AclIndex(held), *question)


@pytest.mark.parametrize("denied", ["literal", "prefixed", "by-many-prefixes"])
def test_no_slice_of_a_question_about_any_resource_grows_with_the_acls(denied: str) -> None:
    names = [f"t{number:04}" for number in range(4_000)]
    denials = [f"t{number:03}" for number in range(400)] if denied == "by-many-prefixes" else names
    index = AclIndex([acl(name, AclOperation.READ) for name in names])
    for name in denials:
        index.add(acl(name, AclOperation.READ, deny=True, prefixed=denied != "literal"))
    search = index.may_on_any("User:alice", HOST, AclOperation.READ, TOPIC)
    slices = []
    with suppress(StopIteration):
        while True:
            slices.append(lines_run(partial(next, search)))
    assert len(slices) > 1
    assert max(slices) < 30_000
    assert not may_on_any(index, "User:alice", HOST, AclOperation.READ, TOPIC)


def test_acls_that_change_between_slices_count_in_the_answer() -> None:
    names = [f"t{number:04}" for number in range(4_000)]
    changes: list[tuple[Callable[[AclIndex], None], bool]] = [
        (lambda index: index.add(acl("new", AclOperation.READ)), True),
        (lambda index: index.remove(acl("t3999", AclOperation.READ, deny=True)), True),
        (lambda index: index.remove(acl("t3999", AclOperation.READ)), False),
        (lambda index: index.add(acl("*", AclOperation.READ, "User:*", deny=True)), False),
        (lambda index: index.add(acl("*", AclOperation.READ, "User:*")), True),
    ]
    for change, expected in changes:
        index = AclIndex(acl(name, AclOperation.READ, deny=deny) for name in names for deny in (False, True))
        search = index.may_on_any("User:alice", HOST, AclOperation.READ, TOPIC)
        next(search)
        change(index)
        assert at_once(search) is expected
        assert may_on_any(index, "User:alice", HOST, AclOperation.READ, TOPIC) is expected


def test_a_denied_prefix_that_changes_between_slices_counts_in_the_answer() -> None:
    names = ["free", *(f"t{number:04}" for number in range(4_000)), "z1", "z2"]
    denials = [acl(name, AclOperation.READ, deny=True) for name in names if name.startswith("t")]
    prefixes = [acl(name, AclOperation.READ, deny=True, prefixed=True) for name in ("z", "fr")]
    for initial, change, expected in (
        (prefixes, lambda index: index.remove(prefixes[0]), True),  # of names that were looked at
        (prefixes[:1], lambda index: index.add(prefixes[1]), False),  # of one that was not
    ):
        index = AclIndex([*(acl(name, AclOperation.READ) for name in names), *denials, *initial])
        search = index.may_on_any("User:alice", HOST, AclOperation.READ, TOPIC)
        next(search)
        change(index)
        assert at_once(search) is expected


def test_random_changes_between_slices_never_leave_a_stale_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 1)  # a slice is one name
    rng, index, held = Random(3), AclIndex(), list[AclState]()
    question = "User:alice", HOST, AclOperation.READ, TOPIC
    endings = Counter[tuple[int, bool]]()
    for _ in range(300):
        possible, slices = set[bool](), 0
        search = index.may_on_any(*question)
        while True:
            possible.add(may_on_any(AclIndex(held), *question))
            try:
                next(search)
            except StopIteration as end:
                assert end.value in possible
                endings[min(slices, 3), end.value] += 1
                break
            slices += 1
            change_at_random(index, held, rng)
        for _ in range(3):
            change_at_random(index, held, rng)
    assert min(endings[3, True], endings[3, False]) > 20


def change_at_random(index: AclIndex, held: list[AclState], rng: Random) -> None:
    """Remove an ACL, or add one; three of four deny."""
    if len(held) > rng.randrange(25):
        index.remove(held.pop(rng.randrange(len(held))))
        return
    name, principal = rng.choice(("a", "ab", "b", "bc")), rng.choice(("User:alice", "User:*"))
    deny, prefixed = rng.random() < 0.75, rng.random() < 0.3
    held.append(acl(name, AclOperation.READ, principal, deny=deny, prefixed=prefixed))
    index.add(held[-1])


def test_an_acl_that_was_added_twice_holds_until_both_are_removed() -> None:
    one = acl("a", AclOperation.READ)
    rules = authorizer(one)
    rules.change([], [one])
    rules.change([one], [])
    assert allows(rules, AclOperation.READ, "a")
    rules.change([one], [])
    assert not allows(rules, AclOperation.READ, "a")
    assert len(rules.index) == 0


def test_the_audit_names_the_rule_behind_a_decision() -> None:
    rules = authorizer(
        acl("pay", AclOperation.ALL, prefixed=True), acl("pay-x", AclOperation.READ, deny=True)
    )
    question = (ALICE, HOST, AclOperation.READ, TOPIC)
    assert rules.reason(*question, "payments") == "ALLOW ALL for User:alice from * on PREFIXED pay"
    assert rules.reason(*question, "pay-x") == "DENY READ for User:alice from * on LITERAL pay-x"
    assert rules.reason(*question, "orders") == "no ACL allows it"
    assert rules.reason(Principal("User", "root"), *question[1:], "orders") == "super user"


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

    prefixes = index._prefixes[TOPIC]
    prefixes._firsts = Counted(prefixes._firsts)
    prefixes._pieces = Counted(map(Counted, prefixes._pieces))
    assert index.match("User:alice", HOST, AclOperation.READ, TOPIC, "team-70707.orders").allowed
    assert 0 < steps["read"] < 100  # by all searches together


def test_names_are_found_in_order_after_any_additions_and_removals() -> None:
    random, sorted_names, names = Random(5), SortedNames(), set[str]()
    for _ in range(20_000):
        name = "".join(random.choices("abc", k=random.randrange(12)))
        if name in names and random.random() < 0.6:
            sorted_names.remove(name)
            names.remove(name)
        elif name not in names:
            sorted_names.add(name)
            names.add(name)
        if random.random() < 0.01:
            assert list(sorted_names) == sorted(names)
            text = "".join(random.choices("abc", k=6))
            assert sorted_names.last_up_to(text) == max((one for one in names if one <= text), default=None)
            assert sorted_names.last_before(text) == max((one for one in names if one < text), default=None)
    assert len(sorted_names._pieces) > 3  # so many that pieces were divided, and some of them emptied
    for name in sorted(names):
        sorted_names.remove(name)
    assert (len(sorted_names), sorted_names.last_up_to("c")) == (0, None)


def test_an_index_changed_one_by_one_equals_one_made_at_once() -> None:
    for seed in range(60):
        case = Case(seed, 80, 40)
        changed, random = AclIndex(), Random(seed)
        remaining = list(case.acls)
        for entry in random.sample(remaining, len(remaining)):
            changed.add(entry)
        for entry in random.sample(remaining, len(remaining) // 2):
            changed.remove(entry)
            remaining.remove(entry)
        at_once = AclIndex(remaining)
        assert (changed._literal, changed._prefixed) == (at_once._literal, at_once._prefixed)
        prefixes = (
            {type: list(names) for type, names in one._prefixes.items() if names}
            for one in (changed, at_once)
        )
        assert next(prefixes) == next(prefixes)


def test_a_principal_known_to_have_no_right_on_a_type_is_denied_each_resource() -> None:
    known = Counter[bool]()
    for seed in range(300):
        case = Case(seed, 6, 12)
        authorizer = StandardAuthorizer(
            AuthorizerSettings(
                super_users=parse_super_users(case.super_users), allow_if_no_acl=case.allow_if_no_acl
            )
        )
        authorizer.change((), case.acls)
        authorizer.change([case.acls[at] for at in case.removed], ())
        principal, host, operation, type, _ = case.questions[0]
        assert not authorizer.allows_none(principal, host, operation, type)  # the ACLs are not known yet
        authorizer.end_load()
        for principal, host, operation, type, name in case.questions:
            nothing = authorizer.allows_none(principal, host, operation, type)
            allowed = authorizer.allows(principal, host, operation, type, name)
            assert not (nothing and allowed)
            known[nothing] += not allowed
    assert known[True] > known[False] / 2  # it is known of many
