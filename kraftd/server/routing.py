"""Which APIs are served, and by which file: the table that requests, ApiVersions and Envelope go by.

A file is loaded when its first request comes. Each has `handle(node, call)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kraftd.messages import registry
from kraftd.wire.api import ApiKey, request_class, valid_versions
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node

Handle = Callable[["Node", "Call"], None]

_FILES: dict[ApiKey, str] = {
    ApiKey.FETCH: "api_01_fetch",
    ApiKey.SASL_HANDSHAKE: "api_17_sasl_handshake",
    ApiKey.API_VERSIONS: "api_18_api_versions",
    ApiKey.CREATE_TOPICS: "api_19_create_topics",
    ApiKey.DELETE_TOPICS: "api_20_delete_topics",
    ApiKey.DESCRIBE_CONFIGS: "api_32_describe_configs",
    ApiKey.ALTER_CONFIGS: "api_33_alter_configs",
    ApiKey.SASL_AUTHENTICATE: "api_36_sasl_authenticate",
    ApiKey.CREATE_PARTITIONS: "api_37_create_partitions",
    ApiKey.ELECT_LEADERS: "api_43_elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "api_44_incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "api_45_alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "api_46_list_partition_reassignments",
    ApiKey.VOTE: "api_52_vote",
    ApiKey.BEGIN_QUORUM_EPOCH: "api_53_begin_quorum_epoch",
    ApiKey.END_QUORUM_EPOCH: "api_54_end_quorum_epoch",
    ApiKey.DESCRIBE_QUORUM: "api_55_describe_quorum",
    ApiKey.ALTER_PARTITION: "api_56_alter_partition",
    ApiKey.UPDATE_FEATURES: "api_57_update_features",
    ApiKey.ENVELOPE: "api_58_envelope",
    ApiKey.FETCH_SNAPSHOT: "api_59_fetch_snapshot",
    ApiKey.DESCRIBE_CLUSTER: "api_60_describe_cluster",
    ApiKey.BROKER_REGISTRATION: "api_62_broker_registration",
    ApiKey.BROKER_HEARTBEAT: "api_63_broker_heartbeat",
    ApiKey.UNREGISTER_BROKER: "api_64_unregister_broker",
    ApiKey.ALLOCATE_PRODUCER_IDS: "api_67_allocate_producer_ids",
    ApiKey.CONTROLLER_REGISTRATION: "api_70_controller_registration",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "api_73_assign_replicas_to_dirs",
    ApiKey.ADD_RAFT_VOTER: "api_80_add_raft_voter",
    ApiKey.REMOVE_RAFT_VOTER: "api_81_remove_raft_voter",
    ApiKey.UPDATE_RAFT_VOTER: "api_82_update_raft_voter",
}

# What a broker may forward in an Envelope for a client.
FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)


class Route:
    """One served API: its versions, its request class and its handler, the last two loaded on first use."""

    def __init__(self, key: ApiKey, file: str) -> None:
        self.key = key
        self.file = file
        self.first, self.last = valid_versions(key)
        self.flexible: int = registry.APIS[key][7]

    @cached_property
    def request(self) -> type[Message]:
        return request_class(self.key)

    @cached_property
    def handle(self) -> Handle:
        module: Any = import_module(f"kraftd.server.{self.file}")
        handle: Handle = module.handle
        return handle

    def __repr__(self) -> str:
        return f"<Route {self.key.name} v{self.first}-{self.last} to {self.file}>"


SERVED: dict[int, Route] = {int(key): Route(key, file) for key, file in _FILES.items()}
