"""The APIs of a client listener, and where the handler of each is.

A row names the file with `handle(node, call)`; it is loaded when its first request comes. Handlers authorize
the topics that a request names. `PASSED_ON` goes to the active controller, which authorizes it itself.
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
    ApiKey.API_VERSIONS: "api_18_api_versions",
    ApiKey.DELETE_TOPICS: "api_20_delete_topics",
    ApiKey.DELETE_RECORDS: "api_21_delete_records",
    ApiKey.INIT_PRODUCER_ID: "api_22_init_producer_id",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "api_23_offset_for_leader_epoch",
    ApiKey.DESCRIBE_CONFIGS: "api_32_describe_configs",
    ApiKey.ALTER_CONFIGS: "api_33_alter_configs",
    ApiKey.CREATE_PARTITIONS: "api_37_create_partitions",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "api_44_incremental_alter_configs",
    ApiKey.DESCRIBE_CLUSTER: "api_60_describe_cluster",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "api_75_describe_topic_partitions",
}
# Of a coordinator, which is a broker: listed, for kafka-python takes what the node that it bootstraps from
# lists for what all nodes serve; refused with NOT_COORDINATOR, so that a client looks for it.
OF_COORDINATORS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
)
# Listed, for librdkafka logs in only where they are; a login itself is answered before any request is
# (requests/login.py), and later ones are refused.
OF_LOGINS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
# What a broker asks of a controller for itself, not for a client.
NOT_OF_CLIENTS = frozenset({ApiKey.ALLOCATE_PRODUCER_IDS})
PASSED_ON = FORWARDABLE - NOT_OF_CLIENTS - FILES.keys()


def not_coordinator(call: Call) -> None:
    """The handler of what a coordinator is asked."""
    raise Refusal(ErrorCode.NOT_COORDINATOR)


def no_login(call: Call) -> None:
    """The handler of a login where none is under way, or may begin."""
    raise Refusal(ErrorCode.ILLEGAL_SASL_STATE)


def client_registry(node: Any) -> Registry:
    """The registry of a client listener, with handlers bound to that node."""

    def load(file: str) -> Handle:
        module = import_module(f"kraftd.client_node.{file}")
        return MethodType(module.handle, node)

    routes = [Route(key, None, None, partial(load, file), kinds=CLIENTS) for key, file in FILES.items()]
    routes += [Route(key, None, None, partial(load, "to_controller"), kinds=CLIENTS) for key in PASSED_ON]
    routes += [Route(key, None, None, lambda: not_coordinator, kinds=CLIENTS) for key in OF_COORDINATORS]
    routes += [Route(key, None, None, lambda: no_login, kinds=CLIENTS) for key in OF_LOGINS]
    return Registry(ListenerKind.CLIENT, routes)
