"""The APIs of a broker's listener, and where the handler of each is."""

from __future__ import annotations

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.node import AnsweringNode
from kraftd.answers.routes import routes_of, shared_routes
from kraftd.requests.registry import Registry, Row
from kraftd.wire.api import ApiKey

_TOPIC = AclResourceType.TOPIC
_OF_FOLLOWERS = ((AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER),)

# Those beside `answers.routes`, which any node with an image serves.
ROWS: tuple[Row, ...] = (
    Row(
        ApiKey.PRODUCE,
        AclOperation.WRITE,
        _TOPIC,
        "broker_node.apis.api_00_produce",
        ((AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID),),
    ),
    Row(ApiKey.FETCH, AclOperation.READ, _TOPIC, "broker_node.apis.api_01_fetch", _OF_FOLLOWERS),
    Row(
        ApiKey.LIST_OFFSETS,
        AclOperation.DESCRIBE,
        _TOPIC,
        "broker_node.apis.api_02_list_offsets",
        _OF_FOLLOWERS,
    ),
    Row(ApiKey.DELETE_RECORDS, AclOperation.DELETE, _TOPIC, "broker_node.apis.api_21_delete_records"),
    Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        AclOperation.DESCRIBE,
        _TOPIC,
        "broker_node.apis.api_23_offset_for_leader_epoch",
        _OF_FOLLOWERS,
    ),
    Row(ApiKey.DESCRIBE_PRODUCERS, AclOperation.READ, _TOPIC, "broker_node.apis.api_61_describe_producers"),
)


def broker_registry(node: AnsweringNode) -> Registry:
    """The registry of a broker's listener, with handlers bound to that node."""
    routes = [*routes_of(node, ROWS), *shared_routes(node, (row[0] for row in ROWS))]
    return Registry(routes, unstable=node.settings.unstable_versions)
