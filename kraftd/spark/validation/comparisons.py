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
from kraftd.spark.tables import access, brokers, configs, partitions, topics
from kraftd.spark.timeline import Timeline

BUCKET_OFFSETS = 100_000
MOST_NOTES = 10
"""How many stale configs of a checkpoint are named."""
STATE = {
    "topics": topics.topics,
    "partitions": partitions.partitions,
    "brokers": brokers.brokers,
    "configs": configs.configs,
    "acls": access.acls,
    "features": access.features,
    "quotas": access.quotas,
    "scram_users": access.scram_users,
}
_SETS = ("end_points", "features", "log_dirs")
_OF_THE_LOG = ("created_offset", "created_timestamp_ms", "changed_offset", "registered_offset")


def comparable_checkpoints(timeline: Timeline) -> list[CheckpointFile]:
    """The checkpoints whose prefix can be replayed: from the log's beginning, or from an older checkpoint."""
    held = timeline.checkpoints()
    if timeline.source.start_offset == 0:
        return held
    return held[1:]


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
    for name, make in STATE.items():
        ours, theirs = make(replay), make(made)
        if name == "configs":
            theirs = _without_stale_configs(theirs, replay, checkpoint, note)
        ours, theirs = _plain(ours), _plain(theirs)
        for one, other, where in ((ours, theirs, "only the log"), (theirs, ours, "only the checkpoint")):
            row = one.exceptAll(other).first()
            if row is not None:
                return f"{checkpoint.path}: offset {end}: {where} has in {name}: {row[0]}"
    return None


def _without_stale_configs(
    theirs: DataFrame, replay: Timeline, checkpoint: CheckpointFile, note: Callable[[str], None]
) -> DataFrame:
    """The configs of a checkpoint without the stale ones, of which the first few are noted."""
    gone = configs.gone_configs(replay).withColumn("resource_type", F.lit(configs.TOPIC))
    key = ["resource_type", "resource_name", "name", "value"]
    stale = theirs.join(gone, key).orderBy("resource_name", "name")
    found = stale.select("resource_name", "name", "value", "removed_offset").limit(MOST_NOTES + 1).collect()
    for topic, name, value, removed_offset in found[:MOST_NOTES]:
        note(
            f"{checkpoint.path}: stale config {name}={value} of topic {topic}: the topic that had it was "
            f"deleted at offset {removed_offset}. Apache Kafka keeps such configs in a checkpoint if a topic "
            "of that name is created again. A node that loads this checkpoint applies it"
        )
    if len(found) > MOST_NOTES:
        note(f"{checkpoint.path}: more than {MOST_NOTES} stale configs")
    return theirs.join(gone, key, "left_anti").select(*theirs.columns) if found else theirs


def replica_difference(timeline: Timeline, replicas: Sequence[Replica], other: Replica) -> str | None:
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
    return f"{other.path}: offset {offset}: another record than in {timeline.source.replica.path}"


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
            return (
                f"{timeline.source.replica.path}: offset {row['offset']}: an epoch below {highest} follows it"
            )
        highest = row["high"]
    return None


def _plain(rows: DataFrame) -> DataFrame:
    """The rows as text, without columns that only a log has, and with lists that are sets in order."""
    kept = [name for name in rows.columns if name not in _OF_THE_LOG]
    fields = [F.sort_array(name).alias(name) if name in _SETS else F.col(name) for name in kept]
    return rows.select(F.to_json(F.struct(*fields)).alias("row"))


def _digests(timeline: Timeline, log: CommittedLog, start: int, end: int) -> DataFrame:
    """A digest of each record, path and place left out."""
    columns = [name for name in record_schema().names if name != "batch_offset"]
    rows = Timeline(timeline.session, log, end, permissive=timeline.permissive).log(columns, start=start)
    text = F.to_json(F.struct(*columns))
    return rows.select("offset", F.xxhash64(text).alias("digest"))
