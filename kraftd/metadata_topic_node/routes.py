"""The APIs of a listener of the metadata topic, and where the handler of each is.

What any node with an image answers is in `answers.routes`. All APIs of brokers are listed, also those
that are refused here: kafka-python assumes that every node serves the APIs that its bootstrap node lists.
"""

from __future__ import annotations

from functools import partial

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.node import AnsweringNode
from kraftd.answers.routes import refused, routes_of, shared_routes, unchecked
from kraftd.metadata_topic_node.refused_changes import CHANGES
from kraftd.requests.registry import Registry, Row, handler_of
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

_TOPIC, _GROUP, _CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
_TRANSACTIONS = AclResourceType.TRANSACTIONAL_ID

ROWS: tuple[Row, ...] = (
    Row(ApiKey.PRODUCE, AclOperation.WRITE, _TOPIC, "metadata_topic_node.apis.api_00_produce"),
    Row(
        ApiKey.FETCH,
        AclOperation.READ,
        _TOPIC,
        "metadata_topic_node.apis.api_01_fetch",
        ((AclOperation.CLUSTER_ACTION, _CLUSTER),),
    ),
    Row(ApiKey.LIST_OFFSETS, AclOperation.DESCRIBE, _TOPIC, "metadata_topic_node.apis.api_02_list_offsets"),
    Row(
        ApiKey.OFFSET_COMMIT,
        AclOperation.READ,
        _TOPIC,
        "metadata_topic_node.apis.api_08_offset_commit",
        ((AclOperation.READ, _GROUP),),
    ),
    Row(
        ApiKey.OFFSET_FETCH,
        AclOperation.DESCRIBE,
        _TOPIC,
        "metadata_topic_node.apis.api_09_offset_fetch",
        ((AclOperation.DESCRIBE, _GROUP),),
    ),
    Row(
        ApiKey.FIND_COORDINATOR,
        AclOperation.DESCRIBE,
        _GROUP,
        "metadata_topic_node.apis.api_10_find_coordinator",
        ((AclOperation.DESCRIBE, _TRANSACTIONS), (AclOperation.CLUSTER_ACTION, _CLUSTER)),
    ),
    Row(ApiKey.LIST_GROUPS, None, None, "metadata_topic_node.apis.api_16_list_groups"),
    Row(ApiKey.DELETE_RECORDS, AclOperation.DELETE, _TOPIC, "metadata_topic_node.apis.api_21_delete_records"),
    Row(
        ApiKey.INIT_PRODUCER_ID,
        AclOperation.WRITE,
        _TRANSACTIONS,
        "metadata_topic_node.apis.api_22_init_producer_id",
        (
            (AclOperation.TWO_PHASE_COMMIT, _TRANSACTIONS),
            (AclOperation.IDEMPOTENT_WRITE, _CLUSTER),
            (AclOperation.WRITE, _TOPIC),
        ),
    ),
    Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        AclOperation.DESCRIBE,
        _TOPIC,
        "metadata_topic_node.apis.api_23_offset_for_leader_epoch",
        ((AclOperation.CLUSTER_ACTION, _CLUSTER),),
    ),
    Row(ApiKey.LIST_TRANSACTIONS, None, None, "metadata_topic_node.apis.api_16_list_groups"),
    *(Row(key, CHANGES[key][0], _TOPIC, "metadata_topic_node.refused_changes") for key in CHANGES),
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


def client_registry(node: AnsweringNode) -> Registry:
    """The registry of a listener of the metadata topic, with handlers bound to that node."""
    routes = [
        *routes_of(node, ROWS),
        *shared_routes(node, (row[0] for row in ROWS)),
        *unchecked(OF_COORDINATORS, partial(handler_of, node, "metadata_topic_node.not_coordinator")),
        *refused(OF_LEADERS, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        *refused(OF_LOG_DIRS, ErrorCode.LOG_DIR_NOT_FOUND),
    ]
    return Registry(routes, unstable=node.settings.unstable_versions)
