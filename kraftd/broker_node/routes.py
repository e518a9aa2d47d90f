"""The APIs of a broker's listener, and where the handler of each is."""

from __future__ import annotations

from kraftd.answers.node import AnsweringNode
from kraftd.answers.routes import Row, routes_of, shared_routes
from kraftd.requests.registry import ListenerKind, Registry

# Those beside `answers.routes`, which any node with an image serves.
ROWS: tuple[Row, ...] = ()


def broker_registry(node: AnsweringNode) -> Registry:
    """The registry of a broker's listener, with handlers bound to that node."""
    routes = [*routes_of(node, ROWS), *shared_routes(node, (row[0] for row in ROWS))]
    return Registry(ListenerKind.CLIENT, routes, unstable=node.settings.unstable_versions)
