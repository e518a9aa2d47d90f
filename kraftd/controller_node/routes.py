"""The APIs of a controller listener: the operation to authorize, and the handler, of each.

A row names the file with `handle(node, call)`; it is loaded when its first request comes. Rows without a
file hand the request to the consensus core, which answers at once or later; their contracts:

| API | sent by | answered | errors |
|---|---|---|---|
| Fetch (1), v4-18 | every replica of the log | with records or an error at once; else when there is news, also a moved high watermark (KIP-1166), or after MaxWaitMs | those of KIP-595 and KIP-630: NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH among them, with the leader and its endpoint |
| Vote (52), v0-2 | candidates and prospective ones (KIP-996) | once a granted vote is on disk | INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH, INVALID_VOTER_KEY |
| BeginQuorumEpoch (53), v0-1 | a new leader, to voters | at once | as Vote |
| EndQuorumEpoch (54), v0-1 | a leader that resigns, to voters, with its successors | at once | INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH |
| DescribeQuorum (55), v0-2 | admin clients, also in an Envelope | at once, by the leader only | NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION |
| FetchSnapshot (59), v0-1 | replicas behind the log start (KIP-630) | at once | SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE, and those of Fetch |
| AddRaftVoter (80), v0-1 | admin clients, also in an Envelope; observers that join by themselves (KIP-853) | after commit | NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION, REQUEST_TIMED_OUT, DUPLICATE_VOTER, INVALID_REQUEST |
| RemoveRaftVoter (81), v0 | admin clients, also in an Envelope | after commit | NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION, REQUEST_TIMED_OUT, VOTER_NOT_FOUND, INVALID_REQUEST |
| UpdateRaftVoter (82), v0 | voters, with their endpoints and the kraft.versions that they support | after commit | NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, INVALID_REQUEST, VOTER_NOT_FOUND, UNSUPPORTED_VERSION |

None of these differs from Apache Kafka.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import MethodType
from typing import Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.requests.registry import Handle, ListenerKind, Registry, Route
from kraftd.wire.api import ApiKey

Row = tuple[ApiKey, AclOperation | None, AclResourceType | None, str | None]

_CLUSTER = AclResourceType.CLUSTER
_TOPIC = AclResourceType.TOPIC

ROWS: tuple[Row, ...] = (
    (ApiKey.FETCH, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    (ApiKey.SASL_HANDSHAKE, None, None, "api_17_sasl_handshake"),
    (ApiKey.API_VERSIONS, None, None, "api_18_api_versions"),
    (ApiKey.CREATE_TOPICS, AclOperation.CREATE, _TOPIC, "api_19_create_topics"),
    (ApiKey.DELETE_TOPICS, AclOperation.DELETE, _TOPIC, "api_20_delete_topics"),
    (ApiKey.DESCRIBE_ACLS, AclOperation.DESCRIBE, _CLUSTER, "api_29_describe_acls"),
    (ApiKey.CREATE_ACLS, AclOperation.ALTER, _CLUSTER, "api_30_create_acls"),
    (ApiKey.DELETE_ACLS, AclOperation.ALTER, _CLUSTER, "api_31_delete_acls"),
    (ApiKey.DESCRIBE_CONFIGS, AclOperation.DESCRIBE_CONFIGS, _TOPIC, "api_32_describe_configs"),
    (ApiKey.ALTER_CONFIGS, AclOperation.ALTER_CONFIGS, _TOPIC, "api_33_alter_configs"),
    (ApiKey.SASL_AUTHENTICATE, None, None, "api_36_sasl_authenticate"),
    (ApiKey.CREATE_PARTITIONS, AclOperation.ALTER, _TOPIC, "api_37_create_partitions"),
    (ApiKey.CREATE_DELEGATION_TOKEN, None, None, "api_38_create_delegation_token"),
    (ApiKey.RENEW_DELEGATION_TOKEN, None, None, "api_39_renew_delegation_token"),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, None, None, "api_40_expire_delegation_token"),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, None, None, "api_41_describe_delegation_token"),
    (ApiKey.ELECT_LEADERS, AclOperation.ALTER, _CLUSTER, "api_43_elect_leaders"),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        _TOPIC,
        "api_44_incremental_alter_configs",
    ),
    (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        AclOperation.ALTER,
        _CLUSTER,
        "api_45_alter_partition_reassignments",
    ),
    (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        AclOperation.DESCRIBE,
        _CLUSTER,
        "api_46_list_partition_reassignments",
    ),
    (ApiKey.ALTER_CLIENT_QUOTAS, AclOperation.ALTER_CONFIGS, _CLUSTER, "api_49_alter_client_quotas"),
    (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        AclOperation.DESCRIBE,
        _CLUSTER,
        "api_50_describe_user_scram_credentials",
    ),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        AclOperation.ALTER,
        _CLUSTER,
        "api_51_alter_user_scram_credentials",
    ),
    (ApiKey.VOTE, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    (ApiKey.BEGIN_QUORUM_EPOCH, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    (ApiKey.END_QUORUM_EPOCH, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    (ApiKey.DESCRIBE_QUORUM, AclOperation.DESCRIBE, _CLUSTER, None),
    (ApiKey.ALTER_PARTITION, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_56_alter_partition"),
    (ApiKey.UPDATE_FEATURES, AclOperation.ALTER, _CLUSTER, "api_57_update_features"),
    (ApiKey.ENVELOPE, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_58_envelope"),
    (ApiKey.FETCH_SNAPSHOT, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    (ApiKey.DESCRIBE_CLUSTER, None, None, "api_60_describe_cluster"),  # its handler authorizes it
    (ApiKey.BROKER_REGISTRATION, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_62_broker_registration"),
    (ApiKey.BROKER_HEARTBEAT, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_63_broker_heartbeat"),
    (ApiKey.UNREGISTER_BROKER, AclOperation.ALTER, _CLUSTER, "api_64_unregister_broker"),
    (ApiKey.ALLOCATE_PRODUCER_IDS, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_67_allocate_producer_ids"),
    (ApiKey.CONTROLLER_REGISTRATION, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_70_controller_registration"),
    (ApiKey.ASSIGN_REPLICAS_TO_DIRS, AclOperation.CLUSTER_ACTION, _CLUSTER, "api_73_assign_replicas_to_dirs"),
    (ApiKey.ADD_RAFT_VOTER, AclOperation.ALTER, _CLUSTER, None),
    (ApiKey.REMOVE_RAFT_VOTER, AclOperation.ALTER, _CLUSTER, None),
    (ApiKey.UPDATE_RAFT_VOTER, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
)


def controller_registry(node: Any, pass_to_core: Callable[[], Handle]) -> Registry:
    """The registry of a controller listener, with handlers bound to that node.

    `pass_to_core` returns the handler of requests to the consensus core, when the first of them arrives.
    """

    def load(file: str) -> Handle:
        module = import_module(f"kraftd.controller_node.apis.{file}")
        return MethodType(module.handle, node)  # called faster than a partial

    routes = (
        Route(key, operation, type, partial(load, file) if file is not None else pass_to_core)
        for key, operation, type, file in ROWS
    )
    return Registry(ListenerKind.CONTROLLER, routes)
