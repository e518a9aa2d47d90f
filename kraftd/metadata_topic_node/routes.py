"""The APIs of a client listener, and where the handler of each is.

A row names the file with `handle(node, call)`, which is loaded when its first request comes. It also names
the operation that the handler authorizes for each resource of a request. `PASSED_ON` goes to the active
controller, which authorizes it itself.

All APIs of brokers are listed, also those that are refused here: kafka-python assumes that every node serves
the APIs that its bootstrap node lists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import MethodType

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.node import AnsweringNode
from kraftd.ground.refusal import Refusal
from kraftd.requests.call import Call
from kraftd.requests.registry import FORWARDABLE, Handle, ListenerKind, Registry, Route
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

CLIENTS = frozenset({ListenerKind.CLIENT})

Row = tuple[ApiKey, AclOperation | None, AclResourceType | None, str]

_TOPIC = AclResourceType.TOPIC

# Operations on the cluster are left to the handlers, because their refusals have a text of their own.
ROWS: tuple[Row, ...] = (
    (ApiKey.PRODUCE, AclOperation.WRITE, _TOPIC, "api_00_produce"),
    (ApiKey.FETCH, AclOperation.READ, _TOPIC, "api_01_fetch"),
    (ApiKey.LIST_OFFSETS, AclOperation.DESCRIBE, _TOPIC, "api_02_list_offsets"),
    (ApiKey.METADATA, AclOperation.DESCRIBE, _TOPIC, "answers.api_03_metadata"),
    (ApiKey.OFFSET_COMMIT, AclOperation.READ, _TOPIC, "api_08_offset_commit"),
    (ApiKey.OFFSET_FETCH, AclOperation.DESCRIBE, _TOPIC, "api_09_offset_fetch"),
    (
        ApiKey.FIND_COORDINATOR,
        AclOperation.DESCRIBE,
        AclResourceType.GROUP,
        "api_10_find_coordinator",
    ),
    (ApiKey.LIST_GROUPS, None, None, "api_16_list_groups"),
    (ApiKey.API_VERSIONS, None, None, "answers.api_18_api_versions"),
    (ApiKey.DELETE_TOPICS, AclOperation.DELETE, _TOPIC, "api_20_delete_topics"),
    (ApiKey.DELETE_RECORDS, AclOperation.DELETE, _TOPIC, "api_21_delete_records"),
    (
        ApiKey.INIT_PRODUCER_ID,
        AclOperation.WRITE,
        AclResourceType.TRANSACTIONAL_ID,
        "api_22_init_producer_id",
    ),
    (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        AclOperation.DESCRIBE,
        _TOPIC,
        "api_23_offset_for_leader_epoch",
    ),
    (ApiKey.DESCRIBE_CONFIGS, AclOperation.DESCRIBE_CONFIGS, _TOPIC, "answers.api_32_describe_configs"),
    (
        ApiKey.ALTER_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        _TOPIC,
        "api_33_alter_configs",
    ),
    (
        ApiKey.CREATE_PARTITIONS,
        AclOperation.ALTER,
        _TOPIC,
        "api_37_create_partitions",
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        _TOPIC,
        "api_44_incremental_alter_configs",
    ),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, None, None, "answers.api_48_describe_client_quotas"),
    (ApiKey.DESCRIBE_CLUSTER, None, None, "answers.api_60_describe_cluster"),
    (ApiKey.LIST_TRANSACTIONS, None, None, "api_16_list_groups"),
    (ApiKey.LIST_CONFIG_RESOURCES, None, None, "answers.api_74_list_config_resources"),
    (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        AclOperation.DESCRIBE,
        _TOPIC,
        "answers.api_75_describe_topic_partitions",
    ),
)
# Answered by this node's own controller, whether it leads or not.
OF_OWN_CONTROLLER = (
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
)
# Refused, so that a client looks for the coordinator, which is a broker.
OF_COORDINATORS = (
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)
# Refused, so that a client looks for the partition's leader.
OF_LEADERS = (
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)
# Refused: this node keeps no replicas of brokers' topics.
OF_LOG_DIRS = (ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.DESCRIBE_LOG_DIRS)
# librdkafka logs in only where they are listed; a login itself is answered before any request is
# (requests/login.py), and later ones are refused.
OF_LOGINS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
# What a broker asks of a controller for itself, not for a client.
NOT_OF_CLIENTS = frozenset({ApiKey.ALLOCATE_PRODUCER_IDS})
PASSED_ON = FORWARDABLE - NOT_OF_CLIENTS - {row[0] for row in ROWS}
REFUSED: dict[ErrorCode, tuple[ApiKey, ...]] = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: OF_LEADERS,
    ErrorCode.LOG_DIR_NOT_FOUND: OF_LOG_DIRS,
    ErrorCode.ILLEGAL_SASL_STATE: OF_LOGINS,
}


def refusal_with(error: ErrorCode) -> Handle:
    """A handler that refuses every request whole, with that error."""

    def refuse(_call: Call) -> None:
        raise Refusal(error)

    return refuse


def module_name(file: str) -> str:
    """The module of a row's file: "api_…" of this package, "answers.api_…" of those that any node answers."""
    package, _, name = file.rpartition(".")
    return f"kraftd.{package or 'metadata_topic_node'}{'.apis' if name.startswith('api_') else ''}.{name}"


def client_registry(node: AnsweringNode) -> Registry:
    """The registry of a client listener, with handlers bound to that node."""

    def load(file: str) -> Handle:
        module = import_module(module_name(file))
        return MethodType(module.handle, node)

    routes = [
        Route(key, operation, type, partial(load, file), kinds=CLIENTS) for key, operation, type, file in ROWS
    ]
    others: dict[ApiKey, Callable[[], Handle]] = dict.fromkeys(
        PASSED_ON, partial(load, "answers.to_controller")
    )
    others |= dict.fromkeys(OF_OWN_CONTROLLER, partial(load, "answers.own_controller"))
    others |= dict.fromkeys(OF_COORDINATORS, partial(load, "not_coordinator"))
    for error, keys in REFUSED.items():
        others |= dict.fromkeys(keys, partial(refusal_with, error))
    routes += [Route(key, None, None, handler, kinds=CLIENTS) for key, handler in others.items()]
    return Registry(ListenerKind.CLIENT, routes, unstable=node.settings.unstable_versions)
