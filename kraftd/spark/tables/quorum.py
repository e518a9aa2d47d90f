"""The quorum: its elections, and the checkpoints on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.checkpoints import CheckpointHeader, read_header
from kraftd.spark.errors import InputError
from kraftd.spark.layout import CheckpointFile, Replica
from kraftd.spark.timeline import Timeline

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
    """The table `snapshots`: one row a checkpoint of each directory. The driver reads them, because they are
    few.
    """
    rows = [
        _snapshot_row(replica, checkpoint, permissive=timeline.permissive)
        for replica in replicas
        for checkpoint in replica.checkpoints
        if checkpoint.end_offset <= timeline.end_offset
    ]
    return timeline.session.createDataFrame(rows, SNAPSHOTS)


def _snapshot_row(replica: Replica, checkpoint: CheckpointFile, *, permissive: bool) -> tuple[Any, ...]:
    try:
        header = read_header(checkpoint)
    except InputError:
        if not permissive:
            raise
        header = CheckpointHeader(None, 0, None)
    return (
        checkpoint.path,
        replica.node_id,
        checkpoint.end_offset,
        checkpoint.epoch,
        checkpoint.size_bytes,
        header.last_contained_log_timestamp_ms,
        header.kraft_version,
        header.voters,
    )
