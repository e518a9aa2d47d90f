"""How large requests of ordinary clients are refused undecoded, by API (`requests.unread_refusals`).

A sender that has no right to any topic, group or transactional id is refused each one by the same error.
These are decoded nevertheless, in a thread, and refused in slices: topics by id, since an unknown id has
another error; Metadata and DescribeTopicPartitions, whose answers tell more than the refused topics;
OffsetForLeaderEpoch, OffsetFetch and WriteTxnMarkers, whose rows have another form; FindCoordinator and
DescribeProducers, where the error depends on each key or name; Produce, whose records are never decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct as Layout
from struct import error as TooShort
from typing import TYPE_CHECKING, Any

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.refusal import Refusal
from kraftd.messages import (
    add_partitions_to_txn_request,
    add_partitions_to_txn_response,
    consumer_group_describe_request,
    consumer_group_describe_response,
    delete_groups_request,
    delete_groups_response,
    delete_records_request,
    delete_records_response,
    describe_configs_request,
    describe_configs_response,
    describe_groups_request,
    describe_groups_response,
    describe_share_group_offsets_request,
    describe_share_group_offsets_response,
    describe_transactions_request,
    describe_transactions_response,
    fetch_request,
    fetch_response,
    list_offsets_request,
    list_offsets_response,
    offset_commit_request,
    offset_commit_response,
    share_group_describe_request,
    share_group_describe_response,
    txn_offset_commit_request,
    txn_offset_commit_response,
)
from kraftd.metadata.state import TOPIC_RESOURCE
from kraftd.named_tuple import NamedTuple
from kraftd.requests.unread_refusals import INNER_SAMPLE, UnreadRefusal, WholeRefusal
from kraftd.types import ZERO_UUID
from kraftd.wire.api import ApiKey
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.call import Call

NEWEST = 32_767
HIDDEN_CONFIGS = "The client may not see the configs of this resource."
_TOPIC, _GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
_TRANSACTIONS = AclResourceType.TRANSACTIONAL_ID
_NO_TOPIC, _NO_GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_FIRST_SESSIONS_VERSION = 7  # of Fetch
_SESSION, _SESSION_AT = Layout(">ii"), 17  # a session's id and epoch, below v15
_NO_SESSION = (0, 0), (0, -1)


class Denial(NamedTuple):
    """How a request without a right is refused, up to a version. `or_on_cluster`: this would be enough."""

    refusal: UnreadRefusal
    last_version: int = NEWEST
    or_on_cluster: AclOperation | None = None


def _begins_no_session(version: int, frame: Buffer, offset: int) -> bool:
    """Return whether a Fetch neither uses nor ends a session; it gets none, as KIP-227 allows."""
    if version < _FIRST_SESSIONS_VERSION:
        return True
    try:
        return _SESSION.unpack_from(frame, offset + _SESSION_AT) in _NO_SESSION
    except TooShort:
        return False


_FETCH = UnreadRefusal(
    ("topics",),
    "topic",
    lambda name: fetch_request.FetchRequest(
        topics=[
            fetch_request.FetchTopic(
                name, ZERO_UUID, [fetch_request.FetchPartition(INNER_SAMPLE, fetch_offset=0)]
            )
        ]
    ),
    fetch_response.FetchResponse,
    "responses",
    lambda name: fetch_response.FetchableTopicResponse(
        name,
        ZERO_UUID,
        [
            fetch_response.PartitionData(
                partition_index=INNER_SAMPLE, error_code=_NO_TOPIC, high_watermark=-1, records=b""
            )
        ],
    ),
    _NO_TOPIC,
    AclOperation.READ,
    _TOPIC,
    repeated=Repeated.KEPT,
    inner="partitions",
    inner_copied="partition",
    applies=_begins_no_session,
    only_rows=True,
)
_LIST_OFFSETS = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: list_offsets_request.ListOffsetsRequest(
        topics=[
            list_offsets_request.ListOffsetsTopic(
                name, [list_offsets_request.ListOffsetsPartition(INNER_SAMPLE)]
            )
        ]
    ),
    list_offsets_response.ListOffsetsResponse,
    "topics",
    lambda name: list_offsets_response.ListOffsetsTopicResponse(
        name, [list_offsets_response.ListOffsetsPartitionResponse(INNER_SAMPLE, _NO_TOPIC)]
    ),
    _NO_TOPIC,
    AclOperation.DESCRIBE,
    _TOPIC,
    repeated=Repeated.KEPT,
    inner="partitions",
    inner_copied="partition_index",
)
_DELETE_RECORDS = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: delete_records_request.DeleteRecordsRequest(
        [
            delete_records_request.DeleteRecordsTopic(
                name, [delete_records_request.DeleteRecordsPartition(INNER_SAMPLE)]
            )
        ]
    ),
    delete_records_response.DeleteRecordsResponse,
    "topics",
    lambda name: delete_records_response.DeleteRecordsTopicResult(
        name, [delete_records_response.DeleteRecordsPartitionResult(INNER_SAMPLE, -1, _NO_TOPIC)]
    ),
    _NO_TOPIC,
    AclOperation.DELETE,
    _TOPIC,
    repeated=Repeated.KEPT,
    inner="partitions",
    inner_copied="partition_index",
)
_DESCRIBE_CONFIGS = UnreadRefusal(
    ("resources",),
    "resource_name",
    lambda name: describe_configs_request.DescribeConfigsRequest(
        [describe_configs_request.DescribeConfigsResource(TOPIC_RESOURCE, name)]
    ),
    describe_configs_response.DescribeConfigsResponse,
    "results",
    lambda name: describe_configs_response.DescribeConfigsResult(
        _NO_TOPIC, HIDDEN_CONFIGS, TOPIC_RESOURCE, name
    ),
    _NO_TOPIC,
    AclOperation.DESCRIBE_CONFIGS,
    _TOPIC,
    checked="resource_type",
    repeated=Repeated.KEPT,
)
_OFFSET_COMMIT = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: offset_commit_request.OffsetCommitRequest(
        "",
        topics=[
            offset_commit_request.OffsetCommitRequestTopic(
                name,
                partitions=[offset_commit_request.OffsetCommitRequestPartition(INNER_SAMPLE)],
            )
        ],
    ),
    offset_commit_response.OffsetCommitResponse,
    "topics",
    lambda name: offset_commit_response.OffsetCommitResponseTopic(
        name,
        ZERO_UUID,
        [offset_commit_response.OffsetCommitResponsePartition(INNER_SAMPLE, _NO_GROUP)],
    ),
    _NO_GROUP,
    AclOperation.READ,
    _GROUP,
    inner="partitions",
    inner_copied="partition_index",
)
_TXN_OFFSET_COMMIT = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: txn_offset_commit_request.TxnOffsetCommitRequest(
        topics=[
            txn_offset_commit_request.TxnOffsetCommitRequestTopic(
                name, [txn_offset_commit_request.TxnOffsetCommitRequestPartition(INNER_SAMPLE)]
            )
        ]
    ),
    txn_offset_commit_response.TxnOffsetCommitResponse,
    "topics",
    lambda name: txn_offset_commit_response.TxnOffsetCommitResponseTopic(
        name, [txn_offset_commit_response.TxnOffsetCommitResponsePartition(INNER_SAMPLE, _NO_TRANSACTION)]
    ),
    _NO_TRANSACTION,
    AclOperation.WRITE,
    _TRANSACTIONS,
    repeated=Repeated.KEPT,
    inner="partitions",
    inner_copied="partition_index",
)
_ADD_PARTITIONS = UnreadRefusal(
    ("v3_and_below_topics",),
    "name",
    lambda name: add_partitions_to_txn_request.AddPartitionsToTxnRequest(
        v3_and_below_topics=[add_partitions_to_txn_request.AddPartitionsToTxnTopic(name, (INNER_SAMPLE,))]
    ),
    add_partitions_to_txn_response.AddPartitionsToTxnResponse,
    "results_by_topic_v3_and_below",
    lambda name: add_partitions_to_txn_response.AddPartitionsToTxnTopicResult(
        name,
        [add_partitions_to_txn_response.AddPartitionsToTxnPartitionResult(INNER_SAMPLE, _NO_TRANSACTION)],
    ),
    _NO_TRANSACTION,
    AclOperation.WRITE,
    _TRANSACTIONS,
    inner="partitions",
)
_DESCRIBE_GROUPS = UnreadRefusal(
    ("groups",),
    "",
    lambda name: describe_groups_request.DescribeGroupsRequest((name,)),
    describe_groups_response.DescribeGroupsResponse,
    "groups",
    lambda name: describe_groups_response.DescribedGroup(error_code=_NO_GROUP, group_id=name),
    _NO_GROUP,
    AclOperation.DESCRIBE,
    _GROUP,
    repeated=Repeated.KEPT,
)


def _describe_modern_groups(
    request: Callable[[tuple[str]], Message], response: type[Message], row: Callable[..., Any]
) -> UnreadRefusal:
    """Consumer and share groups are described alike."""
    return UnreadRefusal(
        ("group_ids",),
        "",
        lambda name: request((name,)),
        response,
        "groups",
        lambda name: row(_NO_GROUP, group_id=name),
        _NO_GROUP,
        AclOperation.DESCRIBE,
        _GROUP,
        repeated=Repeated.KEPT,
    )


_DESCRIBE_CONSUMER_GROUPS = _describe_modern_groups(
    consumer_group_describe_request.ConsumerGroupDescribeRequest,
    consumer_group_describe_response.ConsumerGroupDescribeResponse,
    consumer_group_describe_response.DescribedGroup,
)
_DESCRIBE_SHARE_GROUPS = _describe_modern_groups(
    share_group_describe_request.ShareGroupDescribeRequest,
    share_group_describe_response.ShareGroupDescribeResponse,
    share_group_describe_response.DescribedGroup,
)
_DESCRIBE_SHARE_OFFSETS = UnreadRefusal(
    ("groups",),
    "group_id",
    lambda name: describe_share_group_offsets_request.DescribeShareGroupOffsetsRequest(
        [describe_share_group_offsets_request.DescribeShareGroupOffsetsRequestGroup(name)]
    ),
    describe_share_group_offsets_response.DescribeShareGroupOffsetsResponse,
    "groups",
    lambda name: describe_share_group_offsets_response.DescribeShareGroupOffsetsResponseGroup(
        name, error_code=_NO_GROUP
    ),
    _NO_GROUP,
    AclOperation.DESCRIBE,
    _GROUP,
    repeated=Repeated.KEPT,
)
_DELETE_GROUPS = UnreadRefusal(
    ("groups_names",),
    "",
    lambda name: delete_groups_request.DeleteGroupsRequest((name,)),
    delete_groups_response.DeleteGroupsResponse,
    "results",
    lambda name: delete_groups_response.DeletableGroupResult(name, _NO_GROUP),
    _NO_GROUP,
    AclOperation.DELETE,
    _GROUP,
    repeated=Repeated.DROPPED,
)
_DESCRIBE_TRANSACTIONS = UnreadRefusal(
    ("transactional_ids",),
    "",
    lambda name: describe_transactions_request.DescribeTransactionsRequest((name,)),
    describe_transactions_response.DescribeTransactionsResponse,
    "transaction_states",
    lambda name: describe_transactions_response.TransactionState(
        error_code=_NO_TRANSACTION, transactional_id=name
    ),
    _NO_TRANSACTION,
    AclOperation.DESCRIBE,
    _TRANSACTIONS,
    repeated=Repeated.KEPT,
)
DENIALS: dict[int, Denial] = {
    ApiKey.FETCH: Denial(_FETCH, 12, AclOperation.CLUSTER_ACTION),
    ApiKey.LIST_OFFSETS: Denial(_LIST_OFFSETS),
    ApiKey.OFFSET_COMMIT: Denial(_OFFSET_COMMIT, 9),
    ApiKey.DESCRIBE_GROUPS: Denial(_DESCRIBE_GROUPS),
    ApiKey.DELETE_RECORDS: Denial(_DELETE_RECORDS),
    ApiKey.ADD_PARTITIONS_TO_TXN: Denial(_ADD_PARTITIONS, 3),
    ApiKey.TXN_OFFSET_COMMIT: Denial(_TXN_OFFSET_COMMIT),
    ApiKey.DESCRIBE_CONFIGS: Denial(_DESCRIBE_CONFIGS),
    ApiKey.DELETE_GROUPS: Denial(_DELETE_GROUPS),
    ApiKey.DESCRIBE_TRANSACTIONS: Denial(_DESCRIBE_TRANSACTIONS),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Denial(_DESCRIBE_CONSUMER_GROUPS),
    ApiKey.SHARE_GROUP_DESCRIBE: Denial(_DESCRIBE_SHARE_GROUPS),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Denial(_DESCRIBE_SHARE_OFFSETS),
}


class Door(NamedTuple):
    """What a request needs as a whole, from a version on; without it, one error is its answer.

    `has_text`: the answer tells the error in words, too. `applies` is that of a WholeRefusal.
    """

    operation: AclOperation
    type: AclResourceType
    error: ErrorCode
    first_version: int = 0
    has_text: bool = False
    applies: Callable[[int, Buffer, int], bool] | None = None


def _names_a_group(_version: int, frame: Buffer, offset: int) -> bool:
    """Return whether the group, the first field of a request, is not null, which is another error."""
    return offset < len(frame) and frame[offset] != 0


WHOLE: dict[int, Door] = {
    ApiKey.JOIN_GROUP: Door(AclOperation.READ, _GROUP, _NO_GROUP),
    ApiKey.SYNC_GROUP: Door(AclOperation.READ, _GROUP, _NO_GROUP),
    ApiKey.LEAVE_GROUP: Door(AclOperation.READ, _GROUP, _NO_GROUP),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Door(AclOperation.READ, _GROUP, _NO_GROUP),
    ApiKey.SHARE_GROUP_HEARTBEAT: Door(AclOperation.READ, _GROUP, _NO_GROUP),
    ApiKey.SHARE_FETCH: Door(AclOperation.READ, _GROUP, _NO_GROUP, applies=_names_a_group),
    ApiKey.SHARE_ACKNOWLEDGE: Door(AclOperation.READ, _GROUP, _NO_GROUP, applies=_names_a_group),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Door(AclOperation.READ, _GROUP, _NO_GROUP, has_text=True),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Door(AclOperation.DELETE, _GROUP, _NO_GROUP, has_text=True),
    ApiKey.OFFSET_DELETE: Door(AclOperation.DELETE, _GROUP, _NO_GROUP),
    ApiKey.ADD_PARTITIONS_TO_TXN: Door(
        AclOperation.CLUSTER_ACTION,
        AclResourceType.CLUSTER,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        first_version=4,
    ),
}


# Without the feature or the config, their error is another one.
_OF_CONSUMER_GROUPS = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE
_OF_SHARE_GROUPS = (
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)


def unread(node: AnsweringNode, call: Call) -> UnreadRefusal | WholeRefusal | None:
    """How to refuse all that a request names; None if its sender may have a right to some of it."""
    boundary = node.boundary
    if not node.is_ready:
        return None
    if call.key in _OF_CONSUMER_GROUPS and not node.serves_consumer_groups():
        return None
    if call.key in _OF_SHARE_GROUPS and not node.serves_share_groups():
        return None
    door = WHOLE.get(call.key)
    if door is not None and call.version >= door.first_version:
        denied = boundary.allows_none(call, door.operation, door.type)
        return WholeRefusal(partial(_refuse_whole, node, door), door.applies) if denied else None
    denial = DENIALS.get(call.key)
    if denial is None or call.version > denial.last_version:
        return None
    enough = denial.or_on_cluster
    if enough is not None and boundary.allows_quietly(call, enough, AclResourceType.CLUSTER, CLUSTER_NAME):
        return None
    refusal = denial.refusal
    return refusal if boundary.allows_none(call, refusal.operation, refusal.type) else None


def _refuse_whole(node: AnsweringNode, door: Door, call: Call) -> None:
    if door.type == AclResourceType.CLUSTER:
        node.boundary.allows(call, door.operation, door.type, CLUSTER_NAME)  # which audits it
    else:
        node.boundary.note_denials(call, door.operation, door.type, 1)
    raise Refusal(door.error, door.error.message if door.has_text else None)
