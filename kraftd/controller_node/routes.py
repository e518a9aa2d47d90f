"""The APIs of a controller listener: the operation to authorize, and the handler, of each.

A row names a file of `apis`, or, after "decide ", the rule that decides the request by itself, and has the
API's contract. It is loaded when its first request comes. Rows with neither hand the request to the consensus
core, which answers at once or later; their contracts:

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

from functools import partial
from importlib import import_module
from typing import Any, cast

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller_node.node import Node
from kraftd.ground.refusal import Refusal
from kraftd.requests.call import Call
from kraftd.requests.registry import Handle, Registry, Route, Row, Unread, handler_of, unread_of
from kraftd.requests.unread_refusals import UnreadRefusal, UnreadRow, refusal_by_row
from kraftd.wire.api import ApiKey
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

_TOPIC, _GROUP, _CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
_CREATE = AclOperation.CREATE
_ALTER_CONFIGS = (
    (AclOperation.ALTER_CONFIGS, _GROUP),
    (AclOperation.ALTER_CONFIGS, _CLUSTER),
)
_DESCRIBE_TOKENS = (
    (AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN),
    (AclOperation.DESCRIBE_TOKENS, AclResourceType.USER),
)
_DECIDE = "decide "

ROWS: tuple[Row, ...] = (
    Row(ApiKey.FETCH, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    Row(ApiKey.API_VERSIONS, None, None, "controller_node.apis.api_18_api_versions"),
    Row(
        ApiKey.CREATE_TOPICS,
        AclOperation.CREATE,
        _TOPIC,
        "controller_node.apis.api_19_create_topics",
        ((_CREATE, _CLUSTER), (AclOperation.DESCRIBE_CONFIGS, _TOPIC)),
    ),
    Row(
        ApiKey.DELETE_TOPICS,
        AclOperation.DELETE,
        _TOPIC,
        "controller_node.apis.api_20_delete_topics",
        ((AclOperation.DELETE, _CLUSTER), (AclOperation.DESCRIBE, _TOPIC)),
    ),
    Row(ApiKey.DESCRIBE_ACLS, AclOperation.DESCRIBE, _CLUSTER, "controller_node.apis.api_29_describe_acls"),
    Row(ApiKey.CREATE_ACLS, AclOperation.ALTER, _CLUSTER, "controller_node.apis.api_30_create_acls"),
    Row(ApiKey.DELETE_ACLS, AclOperation.ALTER, _CLUSTER, "controller_node.apis.api_31_delete_acls"),
    Row(
        ApiKey.DESCRIBE_CONFIGS,
        AclOperation.DESCRIBE_CONFIGS,
        _TOPIC,
        "controller_node.apis.api_32_describe_configs",
        ((AclOperation.DESCRIBE_CONFIGS, _GROUP), (AclOperation.DESCRIBE_CONFIGS, _CLUSTER)),
    ),
    Row(
        ApiKey.ALTER_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        _TOPIC,
        "controller_node.apis.api_33_alter_configs",
        _ALTER_CONFIGS,
    ),
    Row(
        ApiKey.CREATE_PARTITIONS, AclOperation.ALTER, _TOPIC, "controller_node.apis.api_37_create_partitions"
    ),
    Row(
        ApiKey.CREATE_DELEGATION_TOKEN,
        None,
        None,
        "controller_node.apis.api_38_create_delegation_token",
        ((AclOperation.CREATE_TOKENS, AclResourceType.USER),),
    ),
    Row(ApiKey.RENEW_DELEGATION_TOKEN, None, None, "controller_node.apis.token_expiry"),
    Row(ApiKey.EXPIRE_DELEGATION_TOKEN, None, None, "controller_node.apis.token_expiry"),
    Row(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        None,
        None,
        "controller_node.apis.api_41_describe_delegation_token",
        _DESCRIBE_TOKENS,
    ),
    Row(
        ApiKey.ELECT_LEADERS,
        AclOperation.ALTER,
        _CLUSTER,
        "decide controller.partitions.election:elect_leaders",
        unread=UnreadRow(("topic_partitions",), "topic", inner="partitions"),
    ),
    Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        _TOPIC,
        "controller_node.apis.api_44_incremental_alter_configs",
        (*_ALTER_CONFIGS, (AclOperation.CLUSTER_ACTION, _CLUSTER)),  # this for loggers of brokers
    ),
    Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        AclOperation.ALTER,
        _CLUSTER,
        "decide controller.partitions.reassignment:alter_partition_reassignments",
        unread=UnreadRow(("topics",), "name", inner="partitions", inner_copied="partition_index"),
    ),
    Row(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        AclOperation.DESCRIBE,
        _CLUSTER,
        "decide controller.partitions.reassignment:list_partition_reassignments",
        unread=UnreadRow(("topics",), "name", inner="partition_indexes"),
    ),
    Row(
        ApiKey.ALTER_CLIENT_QUOTAS,
        AclOperation.ALTER_CONFIGS,
        _CLUSTER,
        "controller_node.apis.api_49_alter_client_quotas",
    ),
    Row(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        AclOperation.DESCRIBE,
        _CLUSTER,
        "controller_node.apis.api_50_describe_user_scram_credentials",
        unread=UnreadRow(("users",)),
    ),
    Row(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        AclOperation.ALTER,
        _CLUSTER,
        "decide controller.scram.alter:alter_user_scram_credentials",
        unread=UnreadRow(("deletions", "upsertions"), "name", Repeated.DROPPED),
    ),
    Row(ApiKey.VOTE, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    Row(ApiKey.BEGIN_QUORUM_EPOCH, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    Row(ApiKey.END_QUORUM_EPOCH, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    Row(ApiKey.DESCRIBE_QUORUM, AclOperation.DESCRIBE, _CLUSTER, None),
    Row(
        ApiKey.ALTER_PARTITION,
        AclOperation.CLUSTER_ACTION,
        _CLUSTER,
        "decide controller.partitions.isr:alter_partition",
    ),
    Row(ApiKey.UPDATE_FEATURES, AclOperation.ALTER, _CLUSTER, "controller_node.apis.api_57_update_features"),
    Row(ApiKey.ENVELOPE, AclOperation.CLUSTER_ACTION, _CLUSTER, "controller_node.apis.api_58_envelope"),
    Row(ApiKey.FETCH_SNAPSHOT, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
    Row(
        ApiKey.DESCRIBE_CLUSTER,
        None,
        None,
        "controller_node.apis.api_60_describe_cluster",
        ((AclOperation.ALTER, _CLUSTER),),
    ),
    Row(
        ApiKey.BROKER_REGISTRATION,
        AclOperation.CLUSTER_ACTION,
        _CLUSTER,
        "decide controller.brokers.registration:register_broker",
    ),
    Row(
        ApiKey.BROKER_HEARTBEAT,
        AclOperation.CLUSTER_ACTION,
        _CLUSTER,
        "controller_node.apis.api_63_broker_heartbeat",
    ),
    Row(
        ApiKey.UNREGISTER_BROKER,
        AclOperation.ALTER,
        _CLUSTER,
        "decide controller.brokers.registration:unregister_broker",
    ),
    Row(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        AclOperation.CLUSTER_ACTION,
        _CLUSTER,
        "decide controller.brokers.producer_ids:allocate_producer_ids",
    ),
    Row(
        ApiKey.CONTROLLER_REGISTRATION,
        AclOperation.CLUSTER_ACTION,
        _CLUSTER,
        "decide controller.features.controllers:register_controller",
    ),
    Row(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        AclOperation.CLUSTER_ACTION,
        _CLUSTER,
        "decide controller.partitions.directories:assign_replicas_to_dirs",
    ),
    Row(ApiKey.ADD_RAFT_VOTER, AclOperation.ALTER, _CLUSTER, None),
    Row(ApiKey.REMOVE_RAFT_VOTER, AclOperation.ALTER, _CLUSTER, None),
    Row(ApiKey.UPDATE_RAFT_VOTER, AclOperation.CLUSTER_ACTION, _CLUSTER, None),
)
# A login is answered before any request is (requests/login.py): no other is under way, or may begin. The
# texts are Kafka's.
OF_LOGINS = {
    ApiKey.SASL_HANDSHAKE: None,
    ApiKey.SASL_AUTHENTICATE: "SaslAuthenticate came outside an authentication.",
}


def controller_registry(node: Node) -> Registry:
    """The registry of a controller listener, with handlers bound to that node."""
    routes = [
        Route(
            row.key,
            row.operation,
            row.resource_type,
            partial(_load, node, row.module),
            row.also,
            partial(_load_unread, node, row),
            partial(unread_refusal, row),
        )
        for row in ROWS
    ]
    routes += [Route(key, None, None, partial(_refusing, text)) for key, text in OF_LOGINS.items()]
    return Registry(routes)


def _load(node: Node, module: str | None) -> Handle:
    if module is None:
        return node.core_answers.pass_to_core
    if module.startswith(_DECIDE):
        return deciding(node, module.removeprefix(_DECIDE))
    return handler_of(node, module)


def _load_unread(node: Node, row: Row) -> Unread | None:
    return unread_of(node, file) if (file := _file_of(row)) else None


def unread_refusal(row: Row) -> UnreadRefusal | None:
    """How all elements of an API's large request are refused, if the row or its file say so."""
    if (file := _file_of(row)) and (refusal := getattr(import_module(f"kraftd.{file}"), "UNREAD", None)):
        return cast(UnreadRefusal, refusal)
    return refusal_by_row(row.key, row.operation, row.unread)


def _file_of(row: Row) -> str | None:
    return None if row.module is None or row.module.startswith(_DECIDE) else row.module


def deciding(node: Node, rule: str) -> Handle:
    """A handler that has the rule "module:function" decide each request."""
    module, _, name = rule.partition(":")
    found: Any = getattr(import_module(f"kraftd.{module}"), name)
    decide = getattr(found, "begin", found)

    def handle(call: Call) -> None:
        node.decisions.decide(call, decide)

    return handle


def _refusing(text: str | None) -> Handle:
    def refuse(_call: Call) -> None:
        raise Refusal(ErrorCode.ILLEGAL_SASL_STATE, text)

    return refuse
