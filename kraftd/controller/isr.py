"""AlterPartition: a partition leader proposes who is in sync (KIP-497, KIP-704, KIP-841, KIP-903)."""

from __future__ import annotations

from kraftd.controller.brokers import check_broker_epoch
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.partition_change import Replicas
from kraftd.controller.partition_edits import A_CHANGE, PartitionEdits
from kraftd.controller.turns import InTurns, Pace, Turns
from kraftd.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData
from kraftd.messages.alter_partition_response import AlterPartitionResponse
from kraftd.messages.alter_partition_response import PartitionData as PartitionAnswer
from kraftd.messages.alter_partition_response import TopicData as TopicAnswer
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


@InTurns
def alter_partition(
    ctx: Context, request: AlterPartitionRequest, version: int
) -> Turns[Decision[AlterPartitionResponse]]:
    """The new ISRs that can be had, and per partition what holds now or why not.

    Raises Refusal(STALE_BROKER_EPOCH) for a sender that is not registered under its epoch.  Per partition:
    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER (the sender knows newer epochs than this
    controller), FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, INELIGIBLE_REPLICA, and
    NEW_LEADER_ELECTED when the change was made and took the leadership from the sender.
    """
    if not request.topics:
        return Decision(AlterPartitionResponse(), atomic=False)
    image = ctx.image
    check_broker_epoch(ctx, request.broker_id, request.broker_epoch)
    edits, pace = PartitionEdits(ctx), Pace()
    answer = AlterPartitionResponse(topics=[])
    for wanted in request.topics:
        topic = image.topic(wanted.topic_id)
        rows = []
        for proposal in wanted.partitions:
            if pace.spent(2 * A_CHANGE):
                yield
            if topic is None:
                rows.append(PartitionAnswer(proposal.partition_index, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                rows.append(_alter(edits, image, request.broker_id, topic, proposal, version))
        answer.topics.append(TopicAnswer(wanted.topic_id, rows))
    return Decision(answer, edits.records, atomic=False)


def _alter(
    edits: PartitionEdits,
    image: Image,
    sender: int,
    topic: TopicState,
    proposal: PartitionData,
    version: int,
) -> PartitionAnswer:
    index = proposal.partition_index
    partition = topic.partitions.get(index)
    if partition is None:
        return PartitionAnswer(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if version >= 3:
        members = proposal.new_isr_with_epochs
    else:
        members = [BrokerState(broker_id, ANY_EPOCH) for broker_id in proposal.new_isr]
    isr = tuple([member.broker_id for member in members])
    error = _proposal_error(partition, sender, proposal, isr)
    if error is ErrorCode.NONE and not all(may_join_isr(image, m.broker_id, m.broker_epoch) for m in members):
        error = ErrorCode.INELIGIBLE_REPLICA
    if error is not ErrorCode.NONE:
        return PartitionAnswer(index, error)
    change = edits.change(
        topic,
        index,
        partition,
        election=edits.election(topic),
        isr=isr,
        recovery_state=proposal.leader_recovery_state,
    )
    if change is not None:
        if change.leader not in (sender, NO_LEADER_CHANGE):
            # The new ISR completed a reassignment that takes the sender away: it must hear of its successor
            # first.
            return PartitionAnswer(index, ErrorCode.NEW_LEADER_ELECTED)
        partition = partition.merged(change)
    return PartitionAnswer(
        index,
        ErrorCode.NONE,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.leader_recovery_state,
        partition.partition_epoch,
    )


def _proposal_error(
    partition: PartitionState, sender: int, proposal: PartitionData, isr: Replicas
) -> ErrorCode:
    """What is wrong with a proposal in itself; the order of the checks is Kafka's."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return (
            ErrorCode.NOT_CONTROLLER
        )  # the sender has seen more than we have: another one must lead the quorum
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if len(set(isr)) != len(isr) or not set(isr).issubset(partition.replicas) or sender not in isr:
        return ErrorCode.INVALID_REQUEST
    recovery_state = proposal.leader_recovery_state
    if recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST  # a leader alone recovers, and once it has, it stays so
    return ErrorCode.NONE


def may_join_isr(image: Image, broker_id: int, broker_epoch: int) -> bool:
    """Whether a broker may be in sync: active, and the incarnation that was meant (KIP-841, KIP-903)."""
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active and broker_epoch in (ANY_EPOCH, broker.epoch)
