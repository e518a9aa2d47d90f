"""CreatePartitions: more partitions for topics that exist (KIP-195)."""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.quotas.mutation import UNLIMITED, Charge
from kraftd.controller.record_limit import MAX_RECORDS_PER_REQUEST
from kraftd.controller.time_left import check_time_left
from kraftd.controller.topics.assignment import NewPartitions, Replicas, assigned_isr, check_assignment
from kraftd.controller.topics.placement import Racks, rounds
from kraftd.controller.topics.work import ASSIGNED_US, PARTITION_US, PARTITIONS_PER_PACE_CHECK, PLACED_US
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kraftd.metadata.state import TopicState
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

TOPIC_US = 60  # for the pace: the brokers of all racks are examined


@Sliced
def create_partitions(
    ctx: Context,
    request: CreatePartitionsRequest,
    version: int,
    *,
    charge: Charge = UNLIMITED,
) -> Slices[Decision[CreatePartitionsResponse]]:
    """The new partitions of all valid topics in one batch; per topic its error.

    The request names no topic twice. With validate_only the same answer and no records.
    Raises Refusal(REQUEST_TIMED_OUT). Per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR.
    POLICY_VIOLATION for the topic that brings the request above 10,000 partitions, and for those after it
    (Kafka answers UNKNOWN_SERVER_ERROR then, and adds some).
    """
    if request.topics:
        check_time_left(request.timeout_ms)
    answer = CreatePartitionsResponse(results=[])
    records: list[VersionedRecord] = []
    pace = Pace()
    for topic in request.topics:
        if pace.spent(TOPIC_US):
            yield
        try:
            records += yield from _grow(ctx, pace, topic, MAX_RECORDS_PER_REQUEST - len(records), charge)
        except Refusal as refusal:
            answer.results.append(CreatePartitionsTopicResult(topic.name, refusal.code, refusal.message))
        else:
            answer.results.append(CreatePartitionsTopicResult(topic.name))
    answer.throttle_time_ms = charge.throttle_ms
    return Decision(answer, [] if request.validate_only else records, after=charge.commit)


def _grow(
    ctx: Context, pace: Pace, wanted: CreatePartitionsTopic, most: int, charge: Charge
) -> Slices[list[VersionedRecord]]:
    """The new partitions of one topic.  Raises Refusal for this topic."""
    image = ctx.image
    topic = image.topic_named(wanted.name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    added = wanted.count - present
    if added == 0:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"The topic has {present} partition(s) already.")
    if added < 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {wanted.name} has {present} partition(s), {wanted.count} would not be more.",
        )
    if wanted.assignments is not None and len(wanted.assignments) != added:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partition(s) are to be added, but {len(wanted.assignments)} assignment(s) were given.",
        )
    if added > most:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            f"{added} partitions are too many to add: a request may add {MAX_RECORDS_PER_REQUEST} in all.",
        )
    charge.take(added)
    new_partitions = NewPartitions(image)
    partitions = yield from _replicas(ctx, pace, new_partitions, topic, wanted, added)
    records: list[VersionedRecord] = []
    for first in range(0, added, PARTITIONS_PER_PACE_CHECK):
        some = partitions[first : first + PARTITIONS_PER_PACE_CHECK]
        records += new_partitions.records(topic.id, present + first, some)
        if pace.spent(PARTITION_US * len(some)):
            yield
    return records


def _replicas(
    ctx: Context,
    pace: Pace,
    new_partitions: NewPartitions,
    topic: TopicState,
    wanted: CreatePartitionsTopic,
    added: int,
) -> Slices[list[tuple[Replicas, Replicas]]]:
    """Replicas and ISR of each new partition, with as many replicas as the topic's first partition."""
    image = ctx.image
    present = len(topic.partitions)
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    partitions: list[tuple[Replicas, Replicas]] = []
    if wanted.assignments is None:
        for some in rounds(Racks(image.brokers.values()), ctx.rng, added, replication_factor):
            partitions += new_partitions.placed(some)
            if pace.spent(PLACED_US * len(some)):
                yield
        return partitions
    for index, assignment in enumerate(wanted.assignments, present):
        if pace.spent(ASSIGNED_US):
            yield
        check_assignment(image, assignment.broker_ids, replication_factor)
        partitions.append((assignment.broker_ids, assigned_isr(image, index, assignment.broker_ids)))
    return partitions
