"""Checks that a checkpoint equals the log's replayed prefix, replicas hold the same records, and epochs only
grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.inputs.layout import CheckpointFile, Replica
from kraftd.spark.inputs.replicas import CommittedLog, committed_log
from kraftd.spark.tables import configs
from kraftd.spark.tables.catalog import TABLES
from kraftd.spark.timeline import Timeline
from kraftd.spark.validation.findings import (
    MOST_NOTES,
    OF_THE_LOG,
    SETS,
    STATE,
    checkpoint_text,
    epoch_text,
    note_stale_configs,
    replica_text,
)

BUCKET_OFFSETS = 100_000


def checkpoint_difference(
    timeline: Timeline, checkpoint: CheckpointFile, note: Callable[[str], None]
) -> str | None:
    """The first row, by table, that a checkpoint and the replayed prefix do not share.

    Configs that a checkpoint kept though the log removed them with their topic are no difference but notes:
    Apache Kafka writes such checkpoints.
    """
    end = checkpoint.end_offset
    made = timeline.until(end, base=checkpoint)
    replay = timeline.until(end, checkpoints_below=end)
    for name in STATE:
        ours, theirs = TABLES[name](replay), TABLES[name](made)
        if name == "configs":
            theirs = _without_stale_configs(theirs, replay, checkpoint, note)
        found = _more_of_one(_plain(ours), _plain(theirs))
        for where, row in zip(("only the log", "only the checkpoint"), found, strict=True):
            if row is not None:
                return checkpoint_text(checkpoint, where, name, row)
    return None


def _more_of_one(ours: DataFrame, theirs: DataFrame) -> Sequence[str | None]:
    """The first row of which there are more on each side."""
    both = ours.withColumn("side", F.lit(1)).union(theirs.withColumn("side", F.lit(-1)))
    rows = both.groupBy("row").agg(F.sum("side").alias("more"))
    first = rows.agg(*[F.min(F.when(side, F.col("row"))) for side in (F.col("more") > 0, F.col("more") < 0)])
    return tuple(first.collect()[0])


def _without_stale_configs(
    theirs: DataFrame, replay: Timeline, checkpoint: CheckpointFile, note: Callable[[str], None]
) -> DataFrame:
    """The configs of a checkpoint without the stale ones, of which the first few are noted."""
    gone = configs.gone_configs(replay).withColumn("resource_type", F.lit(configs.TOPIC))
    key = ["resource_type", "resource_name", "name", "value"]
    stale = theirs.join(gone, key).orderBy("resource_name", "name")
    found = stale.select("resource_name", "name", "value", "removed_offset").limit(MOST_NOTES + 1).collect()
    note_stale_configs(checkpoint, found, note)
    return theirs.join(gone, key, "left_anti").select(*theirs.columns) if found else theirs


def replica_difference(timeline: Timeline, other: Replica) -> str | None:
    """The first offset below the committed end at which two replicas hold different records."""
    theirs = committed_log([other], permissive=timeline.permissive)
    start = max(timeline.source.start_offset, theirs.start_offset)
    end = min(timeline.end_offset, theirs.end_offset)
    if start >= end:
        return None
    mine = _digests(timeline, timeline.source, start, end)
    yours = _digests(timeline, theirs, start, end)
    bucket = F.floor(F.col("offset") / BUCKET_OFFSETS).alias("bucket")
    sums = [
        each.groupBy(bucket).agg(F.bit_xor("digest").alias("sum"), F.count("*").alias("count"))
        for each in (mine, yours)
    ]
    joined = sums[0].join(
        sums[1].select("bucket", F.col("sum").alias("sum2"), F.col("count").alias("count2")), "bucket", "full"
    )
    differs = joined.where("NOT (sum <=> sum2 AND count <=> count2)").agg(F.min("bucket")).first()
    if differs is None or differs[0] is None:
        return None
    within = F.floor(F.col("offset") / BUCKET_OFFSETS) == int(differs[0])
    pairs = mine.where(within).join(
        yours.where(within).withColumnRenamed("digest", "digest2"), "offset", "full"
    )
    row = pairs.where("NOT digest <=> digest2").agg(F.min("offset")).first()
    offset = None if row is None else row[0]
    return replica_text(other, offset, timeline.source.replica)


def unreadable(timeline: Timeline) -> str | None:
    """The first damaged place, or epoch that goes back. A torn tail is neither."""
    if timeline.permissive:
        torn = timeline.source.log.torn
        damaged = timeline.damage()
        if torn is not None:
            damaged = damaged.where((F.col("path") != torn.path) | (F.col("position") < torn.position))
        first = damaged.orderBy("path", "position").first()
        if first is not None:
            return f"{first['path']}: byte {first['position']}: {first['reason']}"
    return epochs_go_back(timeline)


def epochs_go_back(timeline: Timeline) -> str | None:
    """The first stretch of the log in which the epoch is lower than before it. Within a split the reading
    task itself checks this; reading everything also verifies checksums and offsets.
    """
    rows = timeline.log(["offset", "epoch"]).where("offset IS NOT NULL")
    bucket = F.floor(F.col("offset") / BUCKET_OFFSETS).alias("bucket")
    found = rows.groupBy(bucket).agg(
        F.min("epoch").alias("low"), F.max("epoch").alias("high"), F.min("offset").alias("offset")
    )
    highest = -1
    for row in found.orderBy("bucket").collect():
        if row["low"] < highest:
            return epoch_text(timeline, row["offset"], highest)
        highest = row["high"]
    return None


def _plain(rows: DataFrame) -> DataFrame:
    """The rows as text, without columns that only a log has, and with lists that are sets in order."""
    kept = [name for name in rows.columns if name not in OF_THE_LOG]
    fields = [F.sort_array(name).alias(name) if name in SETS else F.col(name) for name in kept]
    return rows.select(F.to_json(F.struct(*fields)).alias("row"))


def _digests(timeline: Timeline, log: CommittedLog, start: int, end: int) -> DataFrame:
    """A digest of each record, path and place left out."""
    columns = [name for name in record_schema().names if name != "batch_offset"]
    rows = Timeline(timeline.session, log, end, permissive=timeline.permissive).log(columns, start=start)
    text = F.to_json(F.struct(*columns))
    return rows.select("offset", F.xxhash64(text).alias("digest"))
