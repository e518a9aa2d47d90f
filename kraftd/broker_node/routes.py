"""The APIs of a broker's listener, and where the handler of each is."""

from __future__ import annotations

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.node import AnsweringNode
from kraftd.answers.routes import Row, routes_of, shared_routes
from kraftd.requests.registry import ListenerKind, Registry
from kraftd.wire.api import ApiKey

_TOPIC = AclResourceType.TOPIC
_APIS = "broker_node.apis"

# Those beside `answers.routes`, which any node with an image serves.
ROWS: tuple[Row, ...] = (
    (ApiKey.PRODUCE, AclOperation.WRITE, _TOPIC, f"{_APIS}.api_00_produce"),
    (ApiKey.FETCH, AclOperation.READ, _TOPIC, f"{_APIS}.api_01_fetch"),
    (ApiKey.LIST_OFFSETS, AclOperation.DESCRIBE, _TOPIC, f"{_APIS}.api_02_list_offsets"),
    (ApiKey.DELETE_RECORDS, AclOperation.DELETE, _TOPIC, f"{_APIS}.api_21_delete_records"),
    (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        AclOperation.DESCRIBE,
        _TOPIC,
        f"{_APIS}.api_23_offset_for_leader_epoch",
    ),
    (ApiKey.DESCRIBE_PRODUCERS, AclOperation.READ, _TOPIC, f"{_APIS}.api_61_describe_producers"),
)


def broker_registry(node: AnsweringNode) -> Registry:
    """The registry of a broker's listener, with handlers bound to that node."""
    routes = [*routes_of(node, ROWS), *shared_routes(node, (row[0] for row in ROWS))]
    return Registry(ListenerKind.CLIENT, routes, unstable=node.settings.unstable_versions)
