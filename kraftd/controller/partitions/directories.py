"""AssignReplicasToDirs: a broker reports the log directories of its replicas (KIP-858)."""

from __future__ import annotations

from kraftd.controller.brokers.registration import check_broker_epoch
from kraftd.controller.brokers.transitions import changes
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.edits import CHANGE_US, TOPIC_US, PartitionEdits, online_directories
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kraftd.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraftd.metadata.metadata_version import allows_directory_assignment
from kraftd.metadata.state import TopicState
from kraftd.wire.error_code import ErrorCode


@Sliced
def assign_replicas_to_dirs(
    ctx: Context, request: AssignReplicasToDirsRequest, version: int
) -> Slices[Decision[AssignReplicasToDirsResponse]]:
    """AssignReplicasToDirs (73), v0: a broker reports the log directories of its replicas (KIP-858).

    Authorization: CLUSTER_ACTION. Sent by: brokers with several log directories. Answered after commit.
    Errors: STALE_BROKER_EPOCH, UNSUPPORTED_VERSION (whole request); per partition UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
    Differs from Apache Kafka: nowhere.

    Record the directories of replicas; a replica in an offline directory leaves its ISR.

    Raises Refusal: UNSUPPORTED_VERSION before metadata.version 3.7-IV2, STALE_BROKER_EPOCH. Per partition:
    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (the broker has no replica of it).
    """
    image = ctx.image
    if not allows_directory_assignment(image.metadata_version):
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            "Directories are assigned from metadata.version 3.7-IV2 on, and that is not finalized.",
        )
    sender = request.broker_id
    broker = check_broker_epoch(ctx, sender, request.broker_epoch)
    online_places = online_directories(broker)
    edits, pace = PartitionEdits(ctx), Pace()
    offline: dict[tuple[bytes, int], None] = {}
    answer = AssignReplicasToDirsResponse(directories=[])
    for directory in request.directories:
        if pace.spent(TOPIC_US):
            yield
        online = directory.id in online_places
        topics = []
        for wanted in directory.topics:
            if pace.spent(TOPIC_US):
                yield
            topic = image.topic(wanted.topic_id)
            results = []
            for partition in wanted.partitions:
                if pace.spent(CHANGE_US):
                    yield
                index = partition.partition_index
                error = _assign(edits, topic, index, sender, directory.id)
                if error is ErrorCode.NONE and not online:
                    offline[wanted.topic_id, index] = None
                results.append(PartitionData(index, error))
            topics.append(TopicData(wanted.topic_id, results))
        answer.directories.append(DirectoryData(directory.id, topics))
    if offline:
        edits.records += yield from changes(ctx, offline, leaving=sender)
    return Decision(answer, edits.records, atomic=False)


def _assign(
    edits: PartitionEdits, topic: TopicState | None, index: int, broker_id: int, directory: bytes
) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    edits.change(topic, index, partition, directory=(broker_id, directory))
    return ErrorCode.NONE
