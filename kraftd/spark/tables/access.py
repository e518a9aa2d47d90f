"""The tables of state that is stored by name: configs, ACLs, client quotas, SCRAM users, features, producer
id blocks.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.spark.tables.topics import CREATED, REMOVED
from kraftd.spark.timeline import Timeline, in_log, latest

RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}
ACL_RESOURCE_TYPES = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
TOPIC = 2


def name_of(column: str, names: dict[int, str]) -> Column:
    """The name of a number; the number itself if it has none."""
    pairs = [F.lit(part) for pair in names.items() for part in pair]
    return F.coalesce(F.create_map(*pairs)[F.col(column)], F.col(column).cast("string"))


def configs(timeline: Timeline) -> DataFrame:
    """The state table `configs`: a null value takes a key away, and a topic takes its configs with it."""
    return (
        _set_configs(timeline)
        .join(removed_names(timeline), _is_gone(), "left_anti")
        .select(
            "resource_type",
            name_of("resource_type", RESOURCE_TYPES).alias("resource_type_name"),
            "resource_name",
            "name",
            "value",
            in_log("offset").alias("changed_offset"),
        )
    )


def gone_configs(timeline: Timeline) -> DataFrame:
    """The configs that existed when their topic was removed, and were not set again since."""
    rows = _set_configs(timeline).join(removed_names(timeline), _is_gone())
    return rows.select("resource_name", "name", "value", "removed_offset")


def _is_gone() -> Column:
    """Whether a topic of the config's resource was removed after the config was set."""
    of_topic = (F.col("resource_type") == TOPIC) & (F.col("resource_name") == F.col("removed_name"))
    return of_topic & (F.col("offset") < F.col("removed_offset"))


def _set_configs(timeline: Timeline) -> DataFrame:
    """The last value of each config, also of removed topics."""
    key = ["resource_type", "resource_name", "name"]
    rows = timeline.state(["offset", *key, "value"], ["ConfigRecord"], dated_by=key)
    return latest(rows, *key).where("value IS NOT NULL")


def removed_names(timeline: Timeline) -> DataFrame:
    """The name of each removed topic, and the offset of the last removal of a topic of that name."""
    columns, types = ["offset", "type", "topic_id", "name"], [CREATED, REMOVED]
    rows = timeline.state(columns, types)
    earlier = timeline.before_state(columns, types)
    rows = rows if earlier is None else rows.unionByName(earlier)
    lives = rows.groupBy("topic_id").agg(
        F.max("name").alias("removed_name"),
        F.max(F.when(F.col("type") == REMOVED, F.col("offset"))).alias("removed_offset"),
    )
    return (
        lives.where("removed_offset IS NOT NULL")
        .groupBy("removed_name")
        .agg(F.max("removed_offset").alias("removed_offset"))
    )


def acls(timeline: Timeline) -> DataFrame:
    """The state table `acls`."""
    fields = [
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    ]
    rows = timeline.state(
        ["offset", "type", "id", *fields],
        ["AccessControlEntryRecord", "RemoveAccessControlEntryRecord"],
        dated_by=["id"],
    )
    return (
        latest(rows, "id")
        .where("type = 'AccessControlEntryRecord'")
        .select(
            "id",
            *fields,
            name_of("resource_type", ACL_RESOURCE_TYPES).alias("resource_type_name"),
            name_of("pattern_type", PATTERN_TYPES).alias("pattern_type_name"),
            name_of("operation", OPERATIONS).alias("operation_name"),
            name_of("permission_type", PERMISSIONS).alias("permission_type_name"),
            in_log("offset").alias("created_offset"),
        )
    )


def quotas(timeline: Timeline) -> DataFrame:
    """The state table `quotas`; entity is sorted by its type, a null name the default."""
    columns = ["offset", "entity", "key", "quota_value", "remove"]
    rows = timeline.state(columns, ["ClientQuotaRecord"], dated_by=["entity", "key"])
    plain = F.transform("entity", lambda part: F.struct(part["entity_type"], part["entity_name"]))
    shape = "array<struct<entity_type: string, entity_name: string>>"
    rows = rows.withColumn("entity", F.sort_array(plain).cast(shape))
    newest = latest(rows, "entity", "key").where("NOT remove")
    return newest.select(
        "entity", "key", F.col("quota_value").alias("value"), in_log("offset").alias("changed_offset")
    )


def scram_users(timeline: Timeline) -> DataFrame:
    """The state table `scram_users`: the existing credentials, never their keys."""
    rows = timeline.state(
        ["offset", "type", "name", "mechanism", "iterations"],
        ["UserScramCredentialRecord", "RemoveUserScramCredentialRecord"],
        dated_by=["name", "mechanism"],
    )
    return (
        latest(rows, "name", "mechanism")
        .where("type = 'UserScramCredentialRecord'")
        .select(
            "name",
            "mechanism",
            name_of("mechanism", MECHANISMS).alias("mechanism_name"),
            "iterations",
            in_log("offset").alias("changed_offset"),
        )
    )


def features(timeline: Timeline) -> DataFrame:
    """The state table `features`; the level of kraft.version is the quorum's own record."""
    kinds = ["FeatureLevelRecord", "KRaftVersionRecord"]
    columns = ["offset", "type", "name", "feature_level", "kraft_version"]
    rows = timeline.state(columns, kinds, dated_by=["type", "name"])
    own = F.col("type") == "KRaftVersionRecord"
    rows = rows.where(own | (F.col("name") != "kraft.version")).select(
        "offset",
        F.when(own, "kraft.version").otherwise(F.col("name")).alias("name"),
        F.when(own, F.col("kraft_version")).otherwise(F.col("feature_level")).alias("feature_level"),
    )
    newest = latest(rows, "name").where("feature_level > 0")
    return newest.select("name", "feature_level", in_log("offset").alias("changed_offset"))


def producer_ids(timeline: Timeline) -> DataFrame:
    """The table `producer_ids`: blocks in order; the last one's next_producer_id is the state."""
    columns = ["offset", "timestamp_ms", "broker_id", "broker_epoch", "next_producer_id"]
    rows = timeline.history(columns, ["ProducerIdsRecord"])
    first = F.lag("next_producer_id").over(Window.orderBy("offset"))
    return rows.withColumn("first_producer_id", first).select(
        in_log("offset").alias("offset"),
        "timestamp_ms",
        "broker_id",
        "broker_epoch",
        "first_producer_id",
        "next_producer_id",
    )
