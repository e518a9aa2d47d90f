"""Requests that must change nothing: of another cluster, meant for another voter, of an older epoch (S17)."""

from __future__ import annotations

from kraftd.messages import begin_quorum_epoch_request as begin
from kraftd.messages import end_quorum_epoch_request as end
from kraftd.messages import vote_request as vote
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.simulation.processes.files import CLUSTER_ID
from kraftd.simulation.processes.process import Process
from kraftd.simulation.randomness import SeededRandomness
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.message import Message

OTHER_CLUSTER = "another-cluster-000000"
STRANGER = b"\x07" * 16


def foreign_request(rng: SeededRandomness, process: Process) -> tuple[Message, int]:
    """One of them, and its version."""
    core = process.core
    epoch, end_offset = core.epoch, core.log_end_offset
    kind = rng.below(5)
    cluster_id = OTHER_CLUSTER if kind < 4 else CLUSTER_ID
    if kind == 0:
        partition = vote.PartitionData(
            0,
            epoch + 5,
            99,
            STRANGER,
            process.host.directory_id,
            epoch + 4,
            end_offset + 100,
            rng.chance(0.5),
        )
        return vote.VoteRequest(cluster_id, process.id, [vote.TopicData(METADATA_TOPIC, [partition])]), 2
    if kind == 1:
        begun = begin.PartitionData(0, process.host.directory_id, 99, epoch + 5)
        topics = [begin.TopicData(METADATA_TOPIC, [begun])]
        endpoints = [begin.LeaderEndpoint("CONTROLLER", "n99", 9)]
        return begin.BeginQuorumEpochRequest(cluster_id, process.id, topics, endpoints), 1
    if kind == 2:
        ended = end.PartitionData(0, 99, epoch + 5, (process.id,), [])
        return end.EndQuorumEpochRequest(cluster_id, [end.TopicData(METADATA_TOPIC, [ended])]), 1
    if kind == 3:
        fetched = FetchPartition(0, epoch + 5, end_offset + 10, epoch)
        topic = FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [fetched])
        return FetchRequest(cluster_id=cluster_id, replica_state=ReplicaState(99), topics=[topic]), 18
    late = vote.PartitionData(
        0, max(1, epoch - 1), 99, STRANGER, process.host.directory_id, 0, end_offset, rng.chance(0.5)
    )
    if epoch < 2:  # there is no older epoch: send one meant for another voter
        late.replica_epoch, late.voter_directory_id = epoch, STRANGER
        late.last_offset_epoch = 0 if epoch else 1
    return vote.VoteRequest(cluster_id, process.id, [vote.TopicData(METADATA_TOPIC, [late])]), 2
