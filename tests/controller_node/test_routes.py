"""The APIs of a controller listener: each row's handler, and the operation that is authorized before it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kraftd.acl import CLUSTER_NAME, AclResourceType
from kraftd.controller_node.routes import ROWS, controller_registry
from kraftd.requests.registry import CONTROLLERS, ListenerKind


def test_each_request_is_handled_by_its_file_for_this_node_or_by_the_core() -> None:
    def ask(call: Any) -> None:
        raise AssertionError

    node: Any = object()
    registry = controller_registry(node, lambda: ask)
    assert registry.kind is ListenerKind.CONTROLLER
    assert list(registry.routes) == sorted(key for key, *_ in ROWS)
    for key, operation, type, file in ROWS:
        route = registry.routes[key]
        handle: Any = route.handle
        if file is None:
            assert handle is ask
        else:
            assert handle.__func__ is import_module(f"kraftd.controller_node.{file}").handle
            assert handle.__self__ is node
        door = (operation, type, CLUSTER_NAME) if type is AclResourceType.CLUSTER else None
        assert (route.key, route.door, route.kinds) == (key, door, CONTROLLERS)
