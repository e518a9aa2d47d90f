"""The quorum: its elections, and the checkpoints on disk."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.checkpoints import CheckpointHeader, read_header
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import CheckpointFile, Replica
from kraftd.spark.tables.columns import Row, Rows
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
    """The table `snapshots`: one row a checkpoint of each directory."""
    rows = [tuple(row.values()) for row in snapshot_rows(timeline, replicas)]
    return timeline.session.createDataFrame(rows, SNAPSHOTS)


def snapshot_rows(extent: Extent, replicas: Sequence[Replica]) -> Rows:
    """The rows of `snapshots`. The driver reads the checkpoints, because they are few."""
    return [
        _snapshot_row(replica, checkpoint, permissive=extent.permissive)
        for replica in replicas
        for checkpoint in replica.checkpoints
        if checkpoint.end_offset <= extent.end_offset
    ]


def _snapshot_row(replica: Replica, checkpoint: CheckpointFile, *, permissive: bool) -> Row:
    try:
        header = read_header(checkpoint)
    except InputError:
        if not permissive:
            raise
        header = CheckpointHeader(None, 0, None)
    return {
        "path": checkpoint.path,
        "node_id": replica.node_id,
        "end_offset": checkpoint.end_offset,
        "epoch": checkpoint.epoch,
        "size_bytes": checkpoint.size_bytes,
        "last_contained_log_timestamp_ms": header.last_contained_log_timestamp_ms,
        "kraft_version": header.kraft_version,
        "voters": header.voters,
    }
