"""The APIs of a controller listener: each row's handler, and the operations that may be asked for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kraftd.acl import CLUSTER_NAME, AclResourceType
from kraftd.controller_node.routes import OF_LOGINS, ROWS, controller_registry


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
