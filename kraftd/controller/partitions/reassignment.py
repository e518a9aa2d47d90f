"""AlterPartitionReassignments and ListPartitionReassignments: moving replicas (KIP-455, KIP-860).

A reassignment first adds the new replicas, and notes which are added and which removed. partition_change
completes it once the added ones are in sync.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.change import Assignment, Election, Replicas
from kraftd.controller.partitions.edits import CHANGE_US, TOPIC_US, PartitionEdits
from kraftd.controller.record_limit import check_record_count
from kraftd.controller.time_left import check_time_left
from kraftd.controller.topics.assignment import check_assignment
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from kraftd.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kraftd.metadata.state import PartitionState, TopicState
from kraftd.wire.error_code import ErrorCode


@Sliced
def alter_partition_reassignments(
    ctx: Context, request: AlterPartitionReassignmentsRequest, version: int
) -> Slices[Decision[AlterPartitionReassignmentsResponse]]:
    """AlterPartitionReassignments (45), v0-1: move replicas, or cancel a move (KIP-455).

    Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per
    partition: UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR; REQUEST_TIMED_OUT (no time left) for the whole.
    Differs from Apache Kafka: nowhere.

    Start, change or (with replicas null) cancel reassignments; per partition its error.

    Raises Refusal: REQUEST_TIMED_OUT, POLICY_VIOLATION for more than 10,000 changes. Per partition:
    UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR (if it may not change).
    """
    if not request.topics:
        return Decision(AlterPartitionReassignmentsResponse())  # Kafka checks no further either
    check_time_left(request.timeout_ms)
    answer = AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[],
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    moves = _Moves(ctx, keeps_replication_factor=not request.allow_replication_factor_change)
    pace = Pace()
    for wanted in request.topics:
        if pace.spent(TOPIC_US):
            yield
        topic = ctx.image.topic_named(wanted.name)
        results = []
        for move in wanted.partitions:
            if pace.spent(2 * CHANGE_US):
                yield
            result = ReassignablePartitionResponse(move.partition_index, ErrorCode.NONE, None)
            try:
                moves.move(topic, wanted.name, move.partition_index, move.replicas)
            except Refusal as refusal:
                result.error_code, result.error_message = refusal.code, refusal.message
            results.append(result)
            check_record_count(len(moves.edits.records))
        answer.responses.append(ReassignableTopicResponse(wanted.name, results))
    return Decision(answer, moves.edits.records)


class _Moves:
    """One request's reassignments. A partition named twice is changed twice, one after the other."""

    def __init__(self, ctx: Context, *, keeps_replication_factor: bool) -> None:
        self.edits = PartitionEdits(ctx)
        self._image = ctx.image
        self._keeps_replication_factor = keeps_replication_factor
        self._changed: dict[tuple[bytes, int], PartitionState] = {}

    def move(self, topic: TopicState | None, name: str, index: int, replicas: Replicas | None) -> None:
        """Reassign one partition. Raises Refusal for it alone."""
        if topic is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        partition = self._changed.get((topic.id, index)) or topic.partitions.get(index)
        if partition is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}.")
        if replicas is None:
            isr, assignment = self._cancelled(topic, index, partition)
            election = self.edits.election(topic)
        else:
            check_assignment(self._image, replicas, None)
            if self._keeps_replication_factor:
                _check_replication_factor(partition, replicas)
            isr, assignment, election = None, reassigned(partition, replicas), Election.ONLINE
        change = self.edits.change(topic, index, partition, election=election, isr=isr, assignment=assignment)
        if change is not None:
            self._changed[topic.id, index] = partition.merged(change)

    def _cancelled(
        self, topic: TopicState, index: int, partition: PartitionState
    ) -> tuple[Replicas, Assignment]:
        if not partition.is_reassigning:
            raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        isr, replicas, unclean = reverted(partition)
        if unclean and self.edits.election(topic) is not Election.UNCLEAN:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The reassignment of {topic.name}-{index} cannot be cancelled: only replicas that it added "
                "are in sync, and unclean leader election is not enabled.",
            )
        return isr, Assignment(replicas)


def reassigned(partition: PartitionState, replicas: Replicas) -> Assignment:
    """A partition's assignment while it moves to these replicas: the new ones first, then those being
    removed.

    If it adds (or removes) nothing, those that a reassignment under way adds (or removes) stay, as in Kafka.
    """
    removing = tuple(sorted(set(partition.replicas).difference(replicas)))
    adding = tuple(sorted(set(replicas).difference(partition.replicas)))
    return Assignment(
        replicas + removing,
        adding or partition.adding_replicas,
        removing or partition.removing_replicas,
    )


def reverted(partition: PartitionState) -> tuple[Replicas, Replicas, bool]:
    """ISR and replicas without those being added, and whether that leaves no replica of the ISR.

    Raises Refusal(INVALID_REPLICA_ASSIGNMENT) if no replica would be left.
    """
    adding = partition.adding_replicas
    replicas = tuple([replica for replica in partition.replicas if replica not in adding])
    isr = tuple([replica for replica in partition.isr if replica not in adding])
    if isr:
        return isr, replicas, False
    if not replicas:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The reassignment adds all the replicas there are."
        )
    return replicas[:1], replicas, True


def _check_replication_factor(partition: PartitionState, replicas: Replicas) -> None:
    """Raises Refusal(INVALID_REPLICATION_FACTOR) unless the number of replicas stays the same."""
    wanted = {*partition.replicas, *partition.adding_replicas}.difference(partition.removing_replicas)
    if len(wanted) != len(replicas):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {len(wanted)} to {len(replicas)}.",
        )


@Sliced
def list_partition_reassignments(
    ctx: Context, request: ListPartitionReassignmentsRequest, version: int
) -> Slices[Decision[ListPartitionReassignmentsResponse]]:
    """ListPartitionReassignments (46), v0: the moves under way (KIP-455).

    Authorization: DESCRIBE on the cluster. Sent by: admin clients, and `kafka-topics --describe`. Answered
    once what it shows is committed.
    Differs from Apache Kafka: nowhere.

    The reassignments under way, of the given partitions or of all; partitions without one are left out.
    """
    image = ctx.image
    answer = ListPartitionReassignmentsResponse(error_message=None, topics=[])
    selected: list[tuple[TopicState, Iterable[int]]] = []
    pace = Pace()
    if request.topics is None:
        moving: dict[bytes, list[int]] = {}
        for topic_id, index in image.reassigning_partitions():
            if pace.spent(1):
                yield
            moving.setdefault(topic_id, []).append(index)
        selected = [(image.topics[topic_id], indexes) for topic_id, indexes in moving.items()]
    else:
        for wanted in request.topics:
            if pace.spent(TOPIC_US):
                yield
            found = image.topic_named(wanted.name)
            if found is not None:
                selected.append((found, wanted.partition_indexes))
    for topic, indexes in selected:
        if pace.spent(TOPIC_US):
            yield
        ongoing = []
        for index in indexes:
            if pace.spent(1):
                yield
            partition = topic.partitions.get(index)
            if partition is not None and partition.is_reassigning:
                ongoing.append(
                    OngoingPartitionReassignment(
                        index, partition.replicas, partition.adding_replicas, partition.removing_replicas
                    )
                )
        if ongoing:
            answer.topics.append(OngoingTopicReassignment(topic.name, ongoing))
    return Decision(answer)
