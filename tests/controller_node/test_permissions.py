"""The permissions of a call on the resources that it names, and refusals by a standby itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.controller.configs.resources import ResourceType
from kraftd.controller.decision import Decision
from kraftd.controller.topics.names import everything
from kraftd.controller_node.permissions import (
    no_config_left,
    no_topic_left,
    refused_configs,
    topics_allowed,
    with_refusals,
)
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

Check = tuple[str, AclOperation, AclResourceType, str]
CLUSTER, TOPIC, GROUP = AclResourceType.CLUSTER, AclResourceType.TOPIC, AclResourceType.GROUP
ALTER, DESCRIBE = AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS
UNKNOWN_TYPE = 99


class Guard:
    """A boundary that allows some names, and notes each check and its kind."""

    def __init__(self, *allowed: str, authorizer: bool = True) -> None:
        self.has_authorizer = authorizer
        self.allowed = allowed
        self.checks: list[Check] = []

    def allows(self, call: Any, operation: AclOperation, type: AclResourceType, name: str) -> bool:
        self.checks.append(("aloud", operation, type, name))
        return name in self.allowed

    def allows_quietly(self, call: Any, operation: AclOperation, type: AclResourceType, name: str) -> bool:
        self.checks.append(("quietly", operation, type, name))
        return name in self.allowed


def node(guard: Guard, *, active: bool = True) -> Any:
    return SimpleNamespace(boundary=guard, standing=SimpleNamespace(active=active))


CALL: Any = object()


@pytest.mark.parametrize("quietly", [False, True])
def test_topics_are_filtered_by_name(quietly: bool) -> None:
    guard = Guard("a", "b")
    allowed = topics_allowed(node(guard), CALL, AclOperation.DELETE, quietly=quietly)
    assert allowed(["a", "c", "b"]) == {"a", "b"}
    how = "quietly" if quietly else "aloud"
    assert guard.checks == [(how, AclOperation.DELETE, TOPIC, name) for name in ("a", "c", "b")]


def test_a_permission_on_the_cluster_is_checked_first_and_not_audited() -> None:
    guard = Guard(CLUSTER_NAME)
    assert topics_allowed(node(guard), CALL, AclOperation.CREATE, or_on_cluster=True) is everything
    assert guard.checks == [("quietly", AclOperation.CREATE, CLUSTER, CLUSTER_NAME)]
    assert topics_allowed(node(guard), CALL, AclOperation.CREATE)(["a"]) == set()
    other = Guard("a")
    assert topics_allowed(node(other), CALL, AclOperation.CREATE, or_on_cluster=True)(["a", "b"]) == {"a"}


def test_without_an_authorizer_everything_is_allowed() -> None:
    guard = Guard(authorizer=False)
    assert topics_allowed(node(guard), CALL, AclOperation.CREATE) is everything
    assert refused_configs(node(guard), CALL, resources((ResourceType.TOPIC, "a")), altering=True) == {}
    assert guard.checks == []


def resources(*named: tuple[int, str]) -> list[Any]:
    return [SimpleNamespace(resource_type=type, resource_name=name) for type, name in named]


TYPES = [
    (ResourceType.TOPIC, TOPIC, "x", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    (ResourceType.GROUP, GROUP, "x", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    (ResourceType.BROKER, CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ResourceType.BROKER_LOGGER, CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    (ResourceType.CLIENT_METRICS, CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
]


@pytest.mark.parametrize(("type", "owner", "name", "code"), TYPES)
@pytest.mark.parametrize("altering", [False, True])
def test_configs_belong_to_the_topic_the_group_or_the_cluster(
    type: ResourceType, owner: AclResourceType, name: str, code: ErrorCode, altering: bool
) -> None:
    guard = Guard()
    named = resources((type, "x"))
    assert refused_configs(node(guard), CALL, named, altering=altering) == {0: code}
    operation = ALTER if altering else DESCRIBE
    if altering and type is ResourceType.BROKER_LOGGER:
        operation = AclOperation.CLUSTER_ACTION
    assert guard.checks == [("aloud", operation, owner, name)]
    assert refused_configs(node(Guard(name)), CALL, named, altering=altering) == {}


def test_repeated_resources_are_refused_as_repeated_when_altered() -> None:
    topic, logger = ResourceType.TOPIC, ResourceType.BROKER_LOGGER
    named = resources(
        (topic, "a"), (logger, "1"), (topic, "b"), (logger, "1"), (topic, "a"), (UNKNOWN_TYPE, "a")
    )
    denied, on_cluster = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    expected = {1: on_cluster, 2: denied, 3: on_cluster}
    assert refused_configs(node(Guard()), CALL, named, altering=True) == expected
    assert refused_configs(node(Guard()), CALL, named, altering=True, loggers=False) == {2: denied}
    described = {0: denied, 1: on_cluster, 2: denied, 3: on_cluster, 4: denied}
    assert refused_configs(node(Guard()), CALL, named[:-1], altering=False) == described
    assert refused_configs(node(Guard()), CALL, named, altering=False) == {}  # refused as a whole


@pytest.mark.parametrize(
    ("active", "names", "any_left"),
    [
        (False, ["denied"], False),
        (False, ["denied", "a"], True),
        (False, ["a", "a", "denied"], False),
        (False, [METADATA_TOPIC, "denied"], False),
        (False, [], False),
        (True, ["denied"], True),
    ],
)
def test_a_standby_answers_if_every_topic_named_once_is_denied(
    active: bool, names: list[str], any_left: bool
) -> None:
    guard = Guard("a", METADATA_TOPIC)
    assert no_topic_left(node(guard, active=active), CALL, names, AclOperation.ALTER) is not any_left
    assert {how for how, *_ in guard.checks} <= {"quietly"}
    assert {operation for _, operation, *_ in guard.checks} <= {AclOperation.ALTER}


def test_a_standby_does_not_refuse_topics_allowed_by_the_cluster() -> None:
    guard = Guard(CLUSTER_NAME)
    standby = node(guard, active=False)
    assert not no_topic_left(standby, CALL, ["a"], AclOperation.CREATE, or_on_cluster=True)
    assert no_topic_left(standby, CALL, ["a"], AclOperation.CREATE)


@pytest.mark.parametrize(
    ("named", "answers"),
    [
        ([], True),
        ([(ResourceType.TOPIC, "a")], False),
        ([(ResourceType.TOPIC, "a"), (ResourceType.TOPIC, "a")], True),
        ([(ResourceType.TOPIC, "a"), (ResourceType.BROKER, "a")], False),
        ([(ResourceType.BROKER_LOGGER, "1"), (UNKNOWN_TYPE, "a")], True),
        ([(ResourceType.CLIENT_METRICS, "a")], False),
        ([(ResourceType.GROUP, "a")], False),
    ],
)
def test_a_standby_answers_if_no_named_config_needs_a_decision(
    named: list[tuple[int, str]], answers: bool
) -> None:
    assert no_config_left(resources(*named)) is answers


def test_refusals_follow_the_decisions_own_answers() -> None:
    def in_slices() -> Any:
        yield
        return Decision(SimpleNamespace(responses=["made"]))

    made = Decision(SimpleNamespace(responses=["made"]))
    assert with_refusals(made, "responses", []) is made
    assert made.answer.responses == ["made"]
    decision: Any = with_refusals(made, "responses", ["refused"])
    assert decision is made and made.answer.responses == ["made", "refused"]
    slices: Any = with_refusals(in_slices(), "responses", ["refused"])
    next(slices)
    with pytest.raises(StopIteration) as end:
        next(slices)
    assert end.value.value.answer.responses == ["made", "refused"]
