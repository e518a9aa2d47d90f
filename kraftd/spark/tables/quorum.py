"""The quorum: its elections, and the checkpoints on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.log.segment import scan
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftd.messages.voters_record import VotersRecord
from kraftd.spark.errors import damaged
from kraftd.spark.layout import CheckpointFile, Replica
from kraftd.spark.storage import StoredFile
from kraftd.spark.timeline import Timeline
from kraftd.wire.batch import CorruptBatch, control_records

SNAPSHOTS = (
    "path string, node_id int, end_offset bigint, epoch int, size_bytes bigint, "
    "last_contained_log_timestamp_ms bigint, kraft_version int, voters array<int>"
)


def elections(timeline: Timeline) -> DataFrame:
    """The table `elections`: one row a leader of the quorum that committed a record."""
    columns = ["offset", "epoch", "timestamp_ms", "leader_id", "voters", "granting_voters"]
    rows = timeline.log(columns, ["LeaderChangeMessage"])
    return rows.select(
        "offset",
        "epoch",
        "timestamp_ms",
        "leader_id",
        F.col("voters.voter_id").alias("voters"),
        F.col("granting_voters.voter_id").alias("granting_voters"),
    )


def snapshots(timeline: Timeline, replicas: Sequence[Replica]) -> DataFrame:
    """The table `snapshots`: one row a checkpoint of each directory. They are few: read by the driver."""
    rows = [
        _snapshot_row(replica, checkpoint)
        for replica in replicas
        for checkpoint in replica.checkpoints
        if checkpoint.end_offset <= timeline.end_offset
    ]
    return timeline.session.createDataFrame(rows, SNAPSHOTS)


def _snapshot_row(replica: Replica, checkpoint: CheckpointFile) -> tuple[Any, ...]:
    timestamp_ms, kraft_version, voters = None, 0, None
    file = StoredFile(checkpoint.path)
    try:
        first = next(scan(file, 0, file.size_bytes()), None)
        for record in [] if first is None or not first.header.is_control else control_records(first):
            message = record.message
            if isinstance(message, SnapshotHeaderRecord):
                timestamp_ms = message.last_contained_log_timestamp
            elif isinstance(message, KRaftVersionRecord):
                kraft_version = message.kraft_version
            elif isinstance(message, VotersRecord):
                voters = [voter.voter_id for voter in message.voters]
    except CorruptBatch as error:
        raise damaged(checkpoint.path, error.position, error.reason) from None
    finally:
        file.close()
    return (
        checkpoint.path,
        replica.node_id,
        checkpoint.end_offset,
        checkpoint.epoch,
        checkpoint.size_bytes,
        timestamp_ms,
        kraft_version,
        voters,
    )
