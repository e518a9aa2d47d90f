"""The APIs that any node with an image answers or passes on, for the registries of such nodes.

A row names the module with `handle(node, call)`, which is loaded when its first request comes. It also names
the operation that the handler authorizes for each resource of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from types import MethodType

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.node import AnsweringNode
from kraftd.ground.refusal import Refusal
from kraftd.requests.call import Call
from kraftd.requests.registry import FORWARDABLE, Handle, ListenerKind, Route
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

CLIENTS = frozenset({ListenerKind.CLIENT})

Row = tuple[ApiKey, AclOperation | None, AclResourceType | None, str]

_TOPIC = AclResourceType.TOPIC

# Operations on the cluster are left to the handlers, because their refusals have a text of their own.
ANSWERED: tuple[Row, ...] = (
    (ApiKey.METADATA, AclOperation.DESCRIBE, _TOPIC, "answers.apis.api_03_metadata"),
    (ApiKey.API_VERSIONS, None, None, "answers.apis.api_18_api_versions"),
    (ApiKey.DESCRIBE_CONFIGS, AclOperation.DESCRIBE_CONFIGS, _TOPIC, "answers.apis.api_32_describe_configs"),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, None, None, "answers.apis.api_48_describe_client_quotas"),
    (ApiKey.DESCRIBE_CLUSTER, None, None, "answers.apis.api_60_describe_cluster"),
    (ApiKey.LIST_CONFIG_RESOURCES, None, None, "answers.apis.api_74_list_config_resources"),
    (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        AclOperation.DESCRIBE,
        _TOPIC,
        "answers.apis.api_75_describe_topic_partitions",
    ),
)
# Answered by this node's own controller, whether it leads or not: it authorizes them as a broker does.
OF_OWN_CONTROLLER = (
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
)
# What a broker asks of a controller for itself, not for a client.
NOT_OF_CLIENTS = frozenset({ApiKey.ALLOCATE_PRODUCER_IDS})
# librdkafka logs in only where they are listed; a login itself is answered before any request is
# (requests/login.py), and later ones are refused.
OF_LOGINS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


def shared_routes(node: AnsweringNode, own: Iterable[ApiKey]) -> list[Route]:
    """The routes of any node with an image, but for the APIs that are the node's own."""
    taken = frozenset(own)
    routes = routes_of(node, (row for row in ANSWERED if row[0] not in taken))
    passed_on = FORWARDABLE - NOT_OF_CLIENTS - taken
    routes += unchecked(passed_on, partial(load, node, "answers.to_controller"))
    routes += unchecked(OF_OWN_CONTROLLER, partial(load, node, "answers.own_controller"))
    return routes + refused(OF_LOGINS, ErrorCode.ILLEGAL_SASL_STATE)


def routes_of(node: AnsweringNode, rows: Iterable[Row]) -> list[Route]:
    """The routes of rows, with handlers bound to the node."""
    return [
        Route(key, operation, type, partial(load, node, module), kinds=CLIENTS)
        for key, operation, type, module in rows
    ]


def unchecked(keys: Iterable[ApiKey], load: Callable[[], Handle]) -> list[Route]:
    """Routes to one handler, which leaves the authorization to the node that answers."""
    return [Route(key, None, None, load, kinds=CLIENTS) for key in keys]


def refused(keys: Iterable[ApiKey], error: ErrorCode) -> list[Route]:
    """Routes of APIs whose every request is refused whole, with that error."""

    def refuse(_call: Call) -> None:
        raise Refusal(error)

    return unchecked(keys, lambda: refuse)


def load(node: AnsweringNode, module: str) -> Handle:
    """The handler of a module, bound to the node; a MethodType is called faster than a partial."""
    return MethodType(import_module(f"kraftd.{module}").handle, node)
