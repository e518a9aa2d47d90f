"""Leader elections: requested ones (ElectLeaders), and periodic preferred and unclean ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.change import Election
from kraftd.controller.partitions.edits import CHANGE_US, TOPIC_US, PartitionEdits
from kraftd.controller.record_limit import check_record_count
from kraftd.controller.time_left import check_time_left
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraftd.metadata.partition_index import PartitionWalk, TopicPartition
from kraftd.metadata.state import NO_LEADER, PartitionState, TopicState
from kraftd.wire.error_code import ErrorCode

# How many partitions one run of a periodic task examines; the rest is left to the next run.
MAX_ELECTIONS_PER_RUN = 400
_BALANCE = "balance leaders"
_ELECT_UNCLEANLY = "elect uncleanly"

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}  # by Kafka's ElectionType


@Sliced
def elect_leaders(
    ctx: Context, request: ElectLeadersRequest, version: int
) -> Slices[Decision[ElectLeadersResponse]]:
    """ElectLeaders (43), v0-2: elect preferred leaders, or any leader at all where none is in the ISR
    (KIP-460).

    Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per
    partition: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
    ELIGIBLE_LEADERS_NOT_AVAILABLE; INVALID_REQUEST and REQUEST_TIMED_OUT (no time left) for the whole.
    Differs from Apache Kafka: nowhere.

    Elect leaders of the given partitions, or of all when none are given (KIP-183, KIP-460).

    Raises Refusal: REQUEST_TIMED_OUT, INVALID_REQUEST for an unknown type of election, POLICY_VIOLATION for
    more than 10,000 new leaders. Per partition: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED,
    PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE. If all are requested, partitions that
    need no election are left out of the answer.
    """
    wanted = request.topic_partitions
    answer = ElectLeadersResponse(replica_election_results=[])
    if wanted is not None and not wanted:
        return Decision(answer, atomic=False)
    check_time_left(request.timeout_ms)
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Unknown election type {request.election_type}: 0 is preferred, 1 is unclean.",
        )
    edits, pace = PartitionEdits(ctx), Pace()
    image = ctx.image
    if wanted is None:
        # All: partitions that need no election are not even examined, but every topic is in the answer.
        due: dict[bytes, list[int]] = {}
        none: list[PartitionResult] = []  # the result of most topics, which may be very many
        for topic_id, index in (
            image.partitions_with_non_preferred_leader()
            if election is Election.PREFERRED
            else image.partitions_without_leader()
        ):
            if pace.spent(1):
                yield
            due.setdefault(topic_id, []).append(index)
        for topic in image.topics.values():
            if pace.spent(1):
                yield
            indexes = due.get(topic.id)
            if indexes is None:
                answer.replica_election_results.append(ReplicaElectionResult(topic.name, none))
                continue
            results = []
            for index in indexes:
                if pace.spent(CHANGE_US):
                    yield
                results.append(_elect(edits, topic, index, election))
            answer.replica_election_results.append(ReplicaElectionResult(topic.name, results))
    else:
        for requested in wanted:
            if pace.spent(TOPIC_US):
                yield
            named = image.topic_named(requested.topic)
            results = []
            for index in requested.partitions:
                if pace.spent(CHANGE_US):
                    yield
                results.append(_elect(edits, named, index, election))
            answer.replica_election_results.append(ReplicaElectionResult(requested.topic, results))
    return Decision(answer, edits.records, atomic=False)


def _elect(
    edits: PartitionEdits, topic: TopicState | None, index: int, election: Election
) -> PartitionResult:
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None or partition is None:
        missing = "topic" if topic is None else "partition"
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no such {missing}.")
    if election is Election.PREFERRED:
        if partition.has_preferred_leader:
            return PartitionResult(
                index, ErrorCode.ELECTION_NOT_NEEDED, "The preferred replica is the leader already."
            )
    elif partition.leader != NO_LEADER:
        return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "The partition has a leader.")
    if edits.change(topic, index, partition, election=election) is None:
        if election is Election.PREFERRED:
            return PartitionResult(
                index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred replica cannot lead now."
            )
        return PartitionResult(
            index,
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "No replica can lead now, whether in sync or not.",
        )
    check_record_count(len(edits.records))
    return PartitionResult(index, ErrorCode.NONE, None)


def balance_leaders(ctx: Context) -> Decision[bool]:
    """Return partitions to their preferred leaders, at most 400 a run; True means to run again at once.

    Due every leader.imbalance.check.interval.seconds if auto.leader.rebalance.enable is true.
    """
    edits = PartitionEdits(ctx)
    walk = ctx.walks.get(_BALANCE) or ctx.image.walk_with_non_preferred_leader()
    examined = walk.next(MAX_ELECTIONS_PER_RUN)
    for topic, index, partition in _existing(ctx, examined):
        if not partition.has_preferred_leader:
            edits.change(topic, index, partition, election=Election.PREFERRED)
    return _some_of_a_walk(ctx, _BALANCE, walk, len(examined), edits)


def elect_unclean_leaders(ctx: Context) -> Decision[bool]:
    """Elect leaders, uncleanly if necessary, for partitions without one if unclean.leader.election.enable
    allows it.

    At most 400 a run; the answer is whether to run again at once. Due every
    unclean.leader.election.interval.ms. A topic that was just allowed unclean elections gets its leader by
    this.
    """
    edits = PartitionEdits(ctx)
    walk = ctx.walks.get(_ELECT_UNCLEANLY) or ctx.image.walk_without_leader()
    examined = walk.next(MAX_ELECTIONS_PER_RUN)
    for topic, index, partition in _existing(ctx, examined):
        if partition.leader == NO_LEADER and edits.election(topic) is Election.UNCLEAN:
            edits.change(topic, index, partition, election=Election.UNCLEAN)
    return _some_of_a_walk(ctx, _ELECT_UNCLEANLY, walk, len(examined), edits)


def _existing(
    ctx: Context, partitions: Iterable[TopicPartition]
) -> Iterator[tuple[TopicState, int, PartitionState]]:
    """The partitions that have not been deleted since."""
    topics = ctx.image.topics
    for topic_id, index in partitions:
        topic = topics.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is not None and partition is not None:
            yield topic, index, partition


def _some_of_a_walk(
    ctx: Context, name: str, walk: PartitionWalk, count: int, edits: PartitionEdits
) -> Decision[bool]:
    """The decision on the next part of a walk; the answer is whether there are more."""
    more = not walk.is_last(count)

    def go_on(_end_offset: int) -> None:
        walk.passed(count)
        if more:
            ctx.walks[name] = walk
        else:
            ctx.walks.pop(name, None)

    return Decision(more, edits.records, atomic=False, after=go_on)
