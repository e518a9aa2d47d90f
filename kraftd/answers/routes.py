"""The APIs that any node with an image answers or passes on, for the registries of such nodes.

The module of a row is loaded when its first request comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.node import AnsweringNode
from kraftd.answers.operations import SUPPORTED
from kraftd.ground.refusal import Refusal
from kraftd.requests.call import Call
from kraftd.requests.registry import FORWARDABLE, Ask, Handle, Route, handler_of, unread_of
from kraftd.requests.registry import Row as Row
from kraftd.requests.unread_refusals import refusal_by_row
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

_TOPIC, _CLUSTER = AclResourceType.TOPIC, AclResourceType.CLUSTER
_CONFIGS = AclOperation.DESCRIBE_CONFIGS


def shown(type: AclResourceType) -> tuple[Ask, ...]:
    """What an answer asks to show what its client may do with resources of the type (KIP-430)."""
    return tuple((operation, type) for operation in SUPPORTED[type])


# Operations on the cluster are left to the handlers, because their refusals have a text of their own.
ANSWERED: tuple[Row, ...] = (
    Row(
        ApiKey.METADATA,
        AclOperation.DESCRIBE,
        _TOPIC,
        "answers.apis.api_03_metadata",
        (*shown(_TOPIC), *shown(_CLUSTER)),
    ),
    Row(ApiKey.API_VERSIONS, None, None, "answers.apis.api_18_api_versions"),
    Row(
        ApiKey.DESCRIBE_CONFIGS,
        _CONFIGS,
        _TOPIC,
        "answers.apis.api_32_describe_configs",
        ((_CONFIGS, AclResourceType.GROUP), (_CONFIGS, _CLUSTER)),
    ),
    Row(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        None,
        None,
        "answers.apis.api_48_describe_client_quotas",
        ((_CONFIGS, _CLUSTER),),
    ),
    Row(ApiKey.DESCRIBE_CLUSTER, None, None, "answers.apis.api_60_describe_cluster", shown(_CLUSTER)),
    Row(
        ApiKey.LIST_CONFIG_RESOURCES,
        None,
        None,
        "answers.apis.api_74_list_config_resources",
        ((_CONFIGS, _CLUSTER),),
    ),
    Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        AclOperation.DESCRIBE,
        _TOPIC,
        "answers.apis.api_75_describe_topic_partitions",
        shown(_TOPIC),
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
    routes += unchecked(passed_on, partial(handler_of, node, "answers.to_controller"))
    routes += unchecked(OF_OWN_CONTROLLER, partial(handler_of, node, "answers.own_controller"))
    return routes + refused(OF_LOGINS, ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate came after a login.")


def routes_of(node: AnsweringNode, rows: Iterable[Row]) -> list[Route]:
    """The routes of rows, with handlers bound to the node."""
    return [
        Route(
            row.key,
            row.operation,
            row.resource_type,
            partial(handler_of, node, row.module or ""),
            row.also,
            partial(unread_of, node, row.module or ""),
            partial(refusal_by_row, row.key, row.operation, row.unread),
        )
        for row in rows
    ]


def unchecked(keys: Iterable[ApiKey], load: Callable[[], Handle]) -> list[Route]:
    """Routes to one handler, which leaves the authorization to the node that answers."""
    return [Route(key, None, None, load) for key in keys]


def refused(keys: Iterable[ApiKey], error: ErrorCode, text: str | None = None) -> list[Route]:
    """Routes of APIs whose every request is refused whole, with that error, and its text if there is a
    place for it.
    """

    def refuse(_call: Call) -> None:
        raise Refusal(error, text)

    return unchecked(keys, lambda: refuse)
