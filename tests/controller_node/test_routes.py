"""The APIs of a controller listener: each row's handler, and the operations that may be asked for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.controller_node.routes import OF_LOGINS, ROWS, controller_registry
from kraftd.wire.api import ApiKey

# What Kafka's ControllerApis, AclApis and KafkaApis authorize on the cluster before anything else.
DOORS = {
    AclOperation.CLUSTER_ACTION: """FETCH VOTE BEGIN_QUORUM_EPOCH END_QUORUM_EPOCH ALTER_PARTITION ENVELOPE
        FETCH_SNAPSHOT BROKER_REGISTRATION BROKER_HEARTBEAT ALLOCATE_PRODUCER_IDS CONTROLLER_REGISTRATION
        ASSIGN_REPLICAS_TO_DIRS UPDATE_RAFT_VOTER""",
    AclOperation.ALTER: """CREATE_ACLS DELETE_ACLS ELECT_LEADERS ALTER_PARTITION_REASSIGNMENTS UPDATE_FEATURES
        ALTER_USER_SCRAM_CREDENTIALS UNREGISTER_BROKER ADD_RAFT_VOTER REMOVE_RAFT_VOTER""",
    AclOperation.DESCRIBE: """DESCRIBE_ACLS LIST_PARTITION_REASSIGNMENTS DESCRIBE_QUORUM
        DESCRIBE_USER_SCRAM_CREDENTIALS""",
    AclOperation.ALTER_CONFIGS: "ALTER_CLIENT_QUOTAS",
}
TOKENS = {
    ApiKey.CREATE_DELEGATION_TOKEN: {(AclOperation.CREATE_TOKENS, AclResourceType.USER)},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {
        (AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN),
        (AclOperation.DESCRIBE_TOKENS, AclResourceType.USER),
    },
}


class Node:
    """Notes which rule is to decide a call, and has the core's handler."""

    def __init__(self) -> None:
        self.core_answers = self.decisions = self
        self.decided: list[Any] = []

    def pass_to_core(self, call: Any) -> None:
        raise AssertionError

    def decide(self, _call: Any, rule: Any) -> None:
        self.decided.append(rule)


def test_each_request_is_handled_by_its_file_or_rule_or_by_the_core() -> None:
    node: Any = Node()
    registry = controller_registry(node)
    assert list(registry.routes) == sorted([*(row.key for row in ROWS), *OF_LOGINS])
    for row in ROWS:
        route = registry.routes[row.key]
        handle: Any = route.handle
        if row.module is None:
            assert handle == node.pass_to_core
        elif row.module.startswith("decide "):
            module, _, name = row.module.removeprefix("decide ").partition(":")
            rule = getattr(import_module(f"kraftd.{module}"), name)
            handle(None)
            assert node.decided.pop() is getattr(rule, "begin", rule)
            assert (rule.__doc__ or "").count("Authorization: ") == 1, "a rule has its API's contract"
        else:
            assert handle.__func__ is import_module(f"kraftd.{row.module}").handle
            assert handle.__self__ is node
        is_door = row.resource_type is AclResourceType.CLUSTER
        door = (row.operation, row.resource_type, CLUSTER_NAME) if is_door else None
        assert (route.key, route.door) == (row.key, door)
        own = set() if row.operation is None else {(row.operation, row.resource_type)}
        assert route.asks == own | set(row.also)


def test_the_cluster_is_asked_for_what_kafka_asks() -> None:
    node: Any = Node()
    routes = controller_registry(node).routes
    doors = {ApiKey[name]: operation for operation, names in DOORS.items() for name in names.split()}
    assert {key: route.door[0] for key, route in routes.items() if route.door} == doors
    assert {key: routes[key].asks for key in TOKENS} == TOKENS
