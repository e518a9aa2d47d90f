"""Commands of scenario scripts about snapshots: taking them, serving them, downloading them.

take 1 6@1 [keep]                          1 makes that snapshot and drops its log before it; keep: keeps it
fetch-snapshot 9 from 1 6@1 [position=N] [max_bytes=N] [epoch=E] [cluster=ID|null|empty] [topic=NAME|none]
               [partition=N]               FetchSnapshot of 9
answer 1 as 2 ANSWER                       the puppet 2 answers 1's last FetchSnapshot (see puppets)
    ANSWER: [bytes=N] [other] [snapshot=6@1] [position=N] [size=N] [epoch=E] [leader=L] [error=NAME]
            [refused=NAME]                 N bytes of it, or all that is left; `other`: of another copy
show pieces                                print each piece that is written
"""

from __future__ import annotations

from kraftd.messages import fetch_snapshot_response as m
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.raft.events import LogStartMoved, SnapshotTaken
from kraftd.raft.replica import ConsensusBroken
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.world import bootstrap_batch, directory_id
from tests.scripts.puppets import PuppetCommands, position, refuse
from tests.scripts.stage import cluster_id


class SnapshotCommands(PuppetCommands):
    def do_take(self, words: list[str], options: dict[str, str]) -> None:
        node_id, snapshot_id = int(words[0]), position(words[1])
        disk, data = self.world.nodes[node_id].disk, self._copy(node_id, snapshot_id)
        try:
            self.world.step(node_id, SnapshotTaken(snapshot_id, len(data)))
        except ConsensusBroken as error:
            self.write(f"{node_id}: ends, {str(error).partition('>')[2].strip()}")
            return
        disk.snapshots[snapshot_id] = data
        if "keep" not in words:
            disk.drop_below(snapshot_id.offset)
            self.world.step(node_id, LogStartMoved(snapshot_id.offset))

    def _copy(self, node_id: int, snapshot_id: OffsetAndEpoch) -> bytes:
        """The bytes of a snapshot, the same on every replica."""
        data = bootstrap_batch(self.world.core(node_id).voters) * 3
        self.world.copies.setdefault(snapshot_id, set()).add(data)
        return data

    # --- requests ---

    def do_fetch_snapshot(self, words: list[str], options: dict[str, str]) -> None:
        client, _, leader, snapshot = words
        end_offset, epoch = position(snapshot)
        partition = PartitionSnapshot(
            int(options.get("partition", 0)),
            int(options.get("epoch", self.world.core(int(leader)).epoch)),
            SnapshotId(end_offset, epoch),
            int(options.get("position", 0)),
            directory_id(int(client)),
        )
        topic = options.get("topic", METADATA_TOPIC)
        topics = [] if topic == "none" else [TopicSnapshot(topic, [partition])]
        max_bytes = int(options.get("max_bytes", (1 << 31) - 1))
        self.ask(
            client, int(leader), FetchSnapshotRequest(cluster_id(options), int(client), max_bytes, topics)
        )

    def piece_text(self, answer: FetchSnapshotResponse) -> str:
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        piece = answer.topics[0].partitions[0]
        if piece.error_code:
            leader = piece.current_leader
            at = "".join(f" at {one.host}:{one.port}" for one in answer.node_endpoints)
            leader_text = (
                f", leader {leader.leader_id}{at}, epoch {leader.leader_epoch}" if leader.leader_epoch else ""
            )
            return ErrorCode(piece.error_code).name + leader_text
        size_bytes = len(piece.unaligned_records or b"")
        snapshot = f"{piece.snapshot_id.end_offset}@{piece.snapshot_id.epoch}"
        return f"{size_bytes} bytes from {piece.position} of the {piece.size} of {snapshot}"

    # --- puppets ---

    def answer_fetchsnapshot(
        self, puppet: int, request: FetchSnapshotRequest, flags: list[str], options: dict[str, str]
    ) -> Message:
        partition = request.topics[0].partitions[0]
        snapshot_id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        answered_id = position(options["snapshot"]) if "snapshot" in options else snapshot_id
        error = ErrorCode[options.get("error", "NONE")]
        data = b"" if error else self._copy(request.replica_id, snapshot_id)
        if "other" in flags:
            data = data[::-1]
        at = int(options.get("position", partition.position))
        leader = int(options.get("leader", puppet))
        piece = m.PartitionSnapshot(
            0,
            error,
            m.SnapshotId(answered_id.offset, answered_id.epoch),
            m.LeaderIdAndEpoch(leader, int(options.get("epoch", partition.current_leader_epoch))),
            int(options.get("size", len(data))),
            at,
            data[at : at + int(options.get("bytes", len(data)))],
        )
        nodes = [m.NodeEndpoint(leader, f"n{leader}", 9000 + leader)] if leader >= 0 else []
        topics = [m.TopicSnapshot(METADATA_TOPIC, [piece])]
        return refuse(FetchSnapshotResponse(topics=topics, node_endpoints=nodes), options)
