"""WriteTxnMarkers (27), v1-2: the ends of transactions, into partitions that this broker leads.

Authorization: ALTER or CLUSTER_ACTION on the cluster. Sent by: transaction coordinators, and operators that
abort a hanging transaction (KIP-664). Answered when every member of the ISR has the markers. Errors:
CLUSTER_AUTHORIZATION_FAILED (whole request); per partition UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS,
NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.broker_node.coordination.markers import write_marker
from kraftd.ground.refusal import Refusal
from kraftd.groups.transactions.partitions import Results
from kraftd.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.messages.write_txn_markers_request import WritableTxnMarker
    from kraftd.requests.call import Call


def handle(node: BrokerNode, call: Call) -> None:
    boundary = node.boundary
    cluster = AclResourceType.CLUSTER, CLUSTER_NAME
    if not boundary.allows_quietly(call, AclOperation.ALTER, *cluster) and not boundary.allows(
        call, AclOperation.CLUSTER_ACTION, *cluster
    ):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    markers = call.message.markers
    if any(_is_of_no_producer(marker) and _is_hosted(node, marker) for marker in markers):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # such a batch cannot be
    call.settled = True
    by_producer: dict[int, Results] = {}
    left = len(markers)

    def answer() -> None:
        rows = [WritableTxnMarkerResult(id, _topics(found)) for id, found in by_producer.items() if found]
        node.guarded(call, lambda: boundary.answer(call, WriteTxnMarkersResponse(rows)))

    def written(producer_id: int, results: Results) -> None:
        nonlocal left
        by_producer.setdefault(producer_id, {}).update(results)
        left -= 1
        if left == 0:
            answer()

    if not markers:
        answer()
    for marker in markers:
        write_marker(node, marker, partial(written, marker.producer_id))


def _is_of_no_producer(marker: WritableTxnMarker) -> bool:
    return marker.producer_id < 0 or marker.producer_epoch < 0


def _is_hosted(node: BrokerNode, marker: WritableTxnMarker) -> bool:
    """Return whether a partition of a marker is here."""
    hosted = (
        node.replicas.get(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
    )
    return any(one is not None and one.partition is not None for one in hosted)


def _topics(results: Results) -> list[WritableTxnMarkerTopicResult]:
    by_topic: dict[str, WritableTxnMarkerTopicResult] = {}
    for (topic, index), error in results.items():
        rows = by_topic.setdefault(topic, WritableTxnMarkerTopicResult(topic, [])).partitions
        rows.append(WritableTxnMarkerPartitionResult(index, error))
    return list(by_topic.values())
