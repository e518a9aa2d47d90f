"""The ends of transactions, written into the partitions that this broker leads (WriteTxnMarkers)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kraftd.broker_node.coordination.coordination import CoordinatingNode
from kraftd.broker_node.partitions.produces import UnderWay
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.groups.transactions.partitions import Results
from kraftd.groups.transactions.transaction import TopicPartition
from kraftd.messages.produce_response import PartitionProduceResponse
from kraftd.partition.partition import ACKS_ALL
from kraftd.partition.validation import ProduceRefusal
from kraftd.types import OFFSETS_TOPIC
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.error_code import ErrorCode, error_of

if TYPE_CHECKING:
    from kraftd.broker_node.coordination.group_coordination import GroupCoordination
    from kraftd.messages.write_txn_markers_request import WritableTxnMarker

MARKER_US = 150  # of work: one is validated, written and waited for
# What the transaction coordinator does not expect of a coordinator of groups: it is to try again.
_OF_GROUPS = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    )
)


class MarkingNode(CoordinatingNode, Protocol):
    """What writing a marker uses of a node."""

    @property
    def groups(self) -> GroupCoordination: ...


def write_marker(node: MarkingNode, marker: WritableTxnMarker, then: Callable[[Results], None]) -> None:
    """Write a marker into its partitions; `then` gets their results once every member of the ISR has it.

    A transaction of thousands of partitions is ended in several event loop callbacks.
    """
    places = [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    answers: dict[TopicPartition, PartitionProduceResponse] = {}

    under_way = UnderWay(
        ACKS_ALL,
        node.settings.request_timeout_ms,
        then=lambda: node.go_on(_results(answers, then)),
    )
    node.go_on(_write(node, marker, under_way, places, answers))


def _results(
    answers: dict[TopicPartition, PartitionProduceResponse], then: Callable[[Results], None]
) -> Slices[None]:
    pace, results = Pace(), Results()
    for place, answer in answers.items():
        if pace.spent(ROW_US):
            yield
        results[place] = error_of(answer.error_code) if answer.error_code else ErrorCode.NONE
    then(results)


def _write(
    node: MarkingNode,
    marker: WritableTxnMarker,
    under_way: UnderWay,
    places: list[TopicPartition],
    answers: dict[TopicPartition, PartitionProduceResponse],
) -> Slices[None]:
    pace = Pace()
    for topic, index in places:
        if pace.spent(MARKER_US):
            yield
        answer = PartitionProduceResponse(index)
        if answers.setdefault((topic, index), answer) is not answer:
            continue  # it is named twice
        hosted = node.replicas.get(topic, index)
        if hosted is None or hosted.partition is None:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif topic == OFFSETS_TOPIC:
            under_way.left += 1
            node.groups.end_transaction(index, marker, partial(_group_ended, node, under_way, answer))
        else:
            _append(node, under_way, topic, index, marker, answer)
    node.produces.handled(under_way, node.now_ms)


def _group_ended(
    node: MarkingNode, under_way: UnderWay, answer: PartitionProduceResponse, error: ErrorCode
) -> None:
    answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _OF_GROUPS else error
    node.produces.settle(under_way)


def _append(
    node: MarkingNode,
    under_way: UnderWay,
    topic: str,
    index: int,
    marker: WritableTxnMarker,
    answer: PartitionProduceResponse,
) -> None:
    hosted = node.replicas.get(topic, index)
    assert hosted is not None and hosted.partition is not None
    node.replicas.refresh_config(hosted)
    data = build_end_marker(
        marker.producer_id,
        marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=node.wall_ms,
    )
    produced = hosted.partition.append_own(
        data, ACKS_ALL, node.wall_ms, transaction_version=marker.transaction_version
    )
    if isinstance(produced, ProduceRefusal):
        hosted.traffic.refused(produced, len(data))
        answer.error_code = produced.error
        return
    assert produced.append is not None
    hosted.traffic.appended(len(data), 1)
    node.append(hosted, produced.append)
    node.produces.add(under_way, hosted, answer, produced)
