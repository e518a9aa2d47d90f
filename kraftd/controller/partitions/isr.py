"""AlterPartition: a partition leader proposes an ISR (KIP-497, KIP-704, KIP-841, KIP-903)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from itertools import repeat

from msgspec import Struct
from msgspec.structs import replace

from kraftd.controller.brokers.registration import check_broker_epoch
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.change import Election, Replicas
from kraftd.controller.partitions.edits import PartitionEdits
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.messages.alter_partition_request import AlterPartitionRequest, PartitionData
from kraftd.messages.alter_partition_response import AlterPartitionResponse
from kraftd.messages.alter_partition_response import PartitionData as PartitionAnswer
from kraftd.messages.alter_partition_response import TopicData as TopicAnswer
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionState,
    TopicState,
)
from kraftd.wire.error_code import ErrorCode

ANY_EPOCH = -1  # of a member whose broker epoch the leader does not know: not checked
PROPOSAL_US = 5  # microseconds, for the pace
EQUAL_US = 2  # of one that equals another
MAX_DECIDED = 1_000  # remembered during one request


class Decided(Struct, gc=False):
    """The decision on a proposal for a partition; an equal proposal for an equal partition gets the same."""

    partition: PartitionState
    proposal: PartitionData
    row: PartitionAnswer
    change: PartitionChangeRecord | None


Known = dict[int, Decided]  # by id(partition); `Decided` keeps the partition alive


@Sliced
def alter_partition(
    ctx: Context, request: AlterPartitionRequest, version: int
) -> Slices[Decision[AlterPartitionResponse]]:
    """AlterPartition (56), v2-3: a partition leader proposes a new ISR.

    Authorization: CLUSTER_ACTION. Sent by: partition leaders. Answered after commit. Errors:
    STALE_BROKER_EPOCH (whole request); per partition UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH,
    INVALID_UPDATE_VERSION, INELIGIBLE_REPLICA (a proposed member is fenced, shutting down or of another
    broker epoch, KIP-903), NEW_LEADER_ELECTED.
    Differs from Apache Kafka: nowhere.

    The accepted new ISRs, and per partition its new state or the error.

    Raises Refusal(STALE_BROKER_EPOCH) for a sender that is not registered with its epoch. Per partition:
    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER (the sender knows newer epochs than this
    controller), FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, INELIGIBLE_REPLICA.
    NEW_LEADER_ELECTED says that the change was made and took the leadership from the sender.
    """
    if not request.topics:
        return Decision(AlterPartitionResponse(), atomic=False)
    image = ctx.image
    check_broker_epoch(ctx, request.broker_id, request.broker_epoch)
    edits, pace = PartitionEdits(ctx), Pace()
    answer = AlterPartitionResponse(topics=[])
    may_join = cache(partial(may_join_isr, image))  # the same few brokers are in most ISRs of a request
    known: dict[tuple[int, bool], Known] = {}
    for wanted in request.topics:
        if pace.spent(EQUAL_US):
            yield
        rows: list[PartitionAnswer] = []
        answer.topics.append(TopicAnswer(wanted.topic_id, rows))
        topic = image.topic(wanted.topic_id)
        if topic is None:
            for proposal in wanted.partitions:
                if pace.spent(EQUAL_US):
                    yield
                rows.append(PartitionAnswer(proposal.partition_index, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        election, partitions = edits.election(topic), topic.partitions
        decided = known.setdefault(edits.settings(topic), {})
        for proposal in wanted.partitions:
            index = proposal.partition_index
            partition = partitions.get(index)
            found = decided.get(id(partition))
            if found is not None:
                found.proposal.partition_index = index
                if found.proposal == proposal:
                    if pace.spent(EQUAL_US):
                        yield
                    rows.append(replace(found.row, partition_index=index))
                    if found.change is not None:
                        edits.repeat(found.change, topic, index)
                    continue
            if pace.spent(PROPOSAL_US):
                yield
            if partition is None:
                rows.append(PartitionAnswer(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            isr, epochs = _members(proposal, version)
            active = all(map(may_join, isr, epochs))
            row, change = _alter(edits, request.broker_id, topic, election, proposal, partition, isr, active)
            rows.append(row)
            if len(decided) < MAX_DECIDED:
                decided[id(partition)] = Decided(partition, replace(proposal), row, change)
    return Decision(answer, edits.records, atomic=False)


def _members(proposal: PartitionData, version: int) -> tuple[Replicas, Iterable[int]]:
    """The proposed ISR, and the broker epoch of each member."""
    if version < 3:
        return tuple(proposal.new_isr), repeat(ANY_EPOCH)
    members = proposal.new_isr_with_epochs
    return tuple([one.broker_id for one in members]), [one.broker_epoch for one in members]


def _alter(
    edits: PartitionEdits,
    sender: int,
    topic: TopicState,
    election: Election,
    proposal: PartitionData,
    partition: PartitionState,
    isr: Replicas,
    may_join: bool,
) -> tuple[PartitionAnswer, PartitionChangeRecord | None]:
    """Make one change, if it is acceptable. `may_join` says whether every member may be in sync."""
    index = proposal.partition_index
    error = _proposal_error(partition, sender, proposal, isr)
    if error is ErrorCode.NONE and not may_join:
        error = ErrorCode.INELIGIBLE_REPLICA
    if error is not ErrorCode.NONE:
        return PartitionAnswer(index, error), None
    change = edits.change(
        topic,
        index,
        partition,
        election=election,
        isr=isr,
        recovery_state=proposal.leader_recovery_state,
    )
    if change is not None:
        if change.leader not in (sender, NO_LEADER_CHANGE):
            # The new ISR completed a reassignment that removes the sender: it must first learn of its
            # successor.
            return PartitionAnswer(index, ErrorCode.NEW_LEADER_ELECTED), change
        partition = partition.merged(change)
    row = PartitionAnswer(
        index,
        ErrorCode.NONE,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.leader_recovery_state,
        partition.partition_epoch,
    )
    return row, change


def _proposal_error(
    partition: PartitionState, sender: int, proposal: PartitionData, isr: Replicas
) -> ErrorCode:
    """The error of a proposal in itself; the order of the checks is Kafka's."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return (
            ErrorCode.NOT_CONTROLLER
        )  # the sender has seen newer state: another controller must lead the quorum
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = set(isr)
    if len(members) != len(isr) or not members.issubset(partition.replicas) or sender not in members:
        return ErrorCode.INVALID_REQUEST
    recovery_state = proposal.leader_recovery_state
    if recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST  # only a leader alone in the ISR recovers, and only once
    return ErrorCode.NONE


def may_join_isr(image: Image, broker_id: int, broker_epoch: int) -> bool:
    """Return whether a broker may be in sync: it is active, and the proposed incarnation
    (KIP-841, KIP-903).
    """
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active and broker_epoch in (ANY_EPOCH, broker.epoch)
