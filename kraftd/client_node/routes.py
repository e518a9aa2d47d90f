"""The APIs of a client listener, and where the handler of each is.

A row names the file with `handle(node, call)`; it is loaded when its first request comes. Handlers authorize
the topics that a request names. `PASSED_ON` goes to the active controller, which authorizes it itself.

All APIs of brokers are listed, also those that are refused here: kafka-python assumes that every node serves
the APIs that its bootstrap node lists.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from types import MethodType
from typing import Any

from kraftd.controller.decision import Refusal
from kraftd.requests.call import Call
from kraftd.requests.registry import FORWARDABLE, Handle, ListenerKind, Registry, Route
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

CLIENTS = frozenset({ListenerKind.CLIENT})

FILES: dict[ApiKey, str] = {
    ApiKey.PRODUCE: "api_00_produce",
    ApiKey.FETCH: "api_01_fetch",
    ApiKey.LIST_OFFSETS: "api_02_list_offsets",
    ApiKey.METADATA: "api_03_metadata",
    ApiKey.FIND_COORDINATOR: "api_10_find_coordinator",
    ApiKey.LIST_GROUPS: "api_16_list_groups",
    ApiKey.API_VERSIONS: "api_18_api_versions",
    ApiKey.DELETE_TOPICS: "api_20_delete_topics",
    ApiKey.DELETE_RECORDS: "api_21_delete_records",
    ApiKey.INIT_PRODUCER_ID: "api_22_init_producer_id",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "api_23_offset_for_leader_epoch",
    ApiKey.DESCRIBE_CONFIGS: "api_32_describe_configs",
    ApiKey.ALTER_CONFIGS: "api_33_alter_configs",
    ApiKey.CREATE_PARTITIONS: "api_37_create_partitions",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "api_44_incremental_alter_configs",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "api_48_describe_client_quotas",
    ApiKey.DESCRIBE_CLUSTER: "api_60_describe_cluster",
    ApiKey.LIST_TRANSACTIONS: "api_16_list_groups",
    ApiKey.LIST_CONFIG_RESOURCES: "api_74_list_config_resources",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "api_75_describe_topic_partitions",
}
# Answered by this node's own controller, whether it leads or not.
OF_OWN_CONTROLLER = (
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
)
# Refused, so that a client looks for the coordinator, which is a broker.
OF_COORDINATORS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
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
PASSED_ON = FORWARDABLE - NOT_OF_CLIENTS - FILES.keys()
REFUSED: dict[ErrorCode, tuple[ApiKey, ...]] = {
    ErrorCode.NOT_COORDINATOR: OF_COORDINATORS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: OF_LEADERS,
    ErrorCode.LOG_DIR_NOT_FOUND: OF_LOG_DIRS,
    ErrorCode.ILLEGAL_SASL_STATE: OF_LOGINS,
}


def refusal_with(error: ErrorCode) -> Handle:
    """A handler that refuses every request whole, with that error."""

    def refuse(_call: Call) -> None:
        raise Refusal(error)

    return refuse


def client_registry(node: Any, unstable: bool = False) -> Registry:
    """The registry of a client listener, with handlers bound to that node; `unstable` versions as well."""

    def load(file: str) -> Handle:
        module = import_module(f"kraftd.client_node.{file}")
        return MethodType(module.handle, node)

    handlers = {key: partial(load, file) for key, file in FILES.items()}
    handlers |= dict.fromkeys(PASSED_ON, partial(load, "to_controller"))
    handlers |= dict.fromkeys(OF_OWN_CONTROLLER, partial(load, "own_controller"))
    for error, keys in REFUSED.items():
        handlers |= dict.fromkeys(keys, partial(refusal_with, error))
    routes = (Route(key, None, None, handler, kinds=CLIENTS) for key, handler in handlers.items())
    return Registry(ListenerKind.CLIENT, routes, unstable=unstable)
