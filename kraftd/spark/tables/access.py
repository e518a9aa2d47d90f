"""The tables of access and quotas: ACLs, client quotas, SCRAM users; beside them features and blocks of
producer ids.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftd.history.names import (
    ACL_RESOURCE_TYPES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    SCRAM_MECHANISMS,
)
from kraftd.spark.tables.names import name_of
from kraftd.spark.tables.validity import current, validity, with_next
from kraftd.spark.timeline import Timeline, in_log, latest

ACL, REMOVED_ACL = "AccessControlEntryRecord", "RemoveAccessControlEntryRecord"
ACL_FIELDS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def acls(timeline: Timeline) -> DataFrame:
    """The state table `acls`."""
    rows = current(timeline, "acl_history", lambda: _acl_history(timeline, whole=False))
    rows = rows.withColumnRenamed("valid_from_offset", "created_offset")
    return rows.select([name for name in rows.columns if not name.startswith("valid_")])


def acl_history(timeline: Timeline) -> DataFrame:
    """The table `acl_history`: one row an ACL, from its creation to its deletion."""
    return _acl_history(timeline, whole=True)


def _acl_history(timeline: Timeline, *, whole: bool) -> DataFrame:
    read = timeline.history if whole else timeline.state
    columns = ["offset", "timestamp_ms", "type", "id", *ACL_FIELDS]
    rows = with_next(read(columns, [ACL, REMOVED_ACL], dated_by=["id"]), "id")
    return rows.where(F.col("type") == ACL).select(
        "id",
        *ACL_FIELDS,
        name_of("resource_type", ACL_RESOURCE_TYPES).alias("resource_type_name"),
        name_of("pattern_type", PATTERN_TYPES).alias("pattern_type_name"),
        name_of("operation", OPERATIONS).alias("operation_name"),
        name_of("permission_type", PERMISSIONS).alias("permission_type_name"),
        *validity(),
    )


def quotas(timeline: Timeline) -> DataFrame:
    """The state table `quotas`; entity is sorted by its type, a null name the default."""
    rows = current(timeline, "quota_history", lambda: _quota_history(timeline, whole=False))
    return rows.select("entity", "key", "value", F.col("valid_from_offset").alias("changed_offset"))


def quota_history(timeline: Timeline) -> DataFrame:
    """The table `quota_history`: one row for each time that a quota was set."""
    return _quota_history(timeline, whole=True)


def _quota_history(timeline: Timeline, *, whole: bool) -> DataFrame:
    read = timeline.history if whole else timeline.state
    columns = ["offset", "timestamp_ms", "entity", "key", "quota_value", "remove"]
    rows = read(columns, ["ClientQuotaRecord"], dated_by=["entity", "key"])
    plain = F.transform("entity", lambda part: F.struct(part["entity_type"], part["entity_name"]))
    shape = "array<struct<entity_type: string, entity_name: string>>"
    rows = with_next(rows.withColumn("entity", F.sort_array(plain).cast(shape)), "entity", "key")
    value = F.col("quota_value").alias("value")
    return rows.where("NOT remove").select("entity", "key", value, *validity())


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
            name_of("mechanism", SCRAM_MECHANISMS).alias("mechanism_name"),
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
        F.when(F.col("offset") >= 0, F.col("timestamp_ms")).alias("timestamp_ms"),
        "broker_id",
        "broker_epoch",
        "first_producer_id",
        "next_producer_id",
    )
