"""Admin operations in the order in which they took effect. The log does not name the principal of an
operation.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.history.names import (
    ACL_RESOURCE_TYPES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    SCRAM_MECHANISMS,
)
from kraftd.spark.tables.access import ACL_FIELDS
from kraftd.spark.tables.names import name_of
from kraftd.spark.tables.partitions import partition_replay
from kraftd.spark.tables.reassignments import CANCELLED, reassignment_steps
from kraftd.spark.timeline import Timeline

TYPES = (
    "TopicRecord",
    "RemoveTopicRecord",
    "ConfigRecord",
    "AccessControlEntryRecord",
    "RemoveAccessControlEntryRecord",
    "ClientQuotaRecord",
    "UserScramCredentialRecord",
    "RemoveUserScramCredentialRecord",
    "FeatureLevelRecord",
    "DelegationTokenRecord",
    "RemoveDelegationTokenRecord",
    "UnregisterBrokerRecord",
)
COLUMNS = (
    "offset",
    "epoch",
    "timestamp_ms",
    "type",
    "topic_id",
    "name",
    *ACL_FIELDS,
    "value",
    "id",
    "entity",
    "key",
    "quota_value",
    "remove",
    "mechanism",
    "iterations",
    "feature_level",
    "token_id",
    "owner",
    "broker_id",
)
OPERATION = (
    "offset",
    "epoch",
    "timestamp_ms",
    "action",
    "resource",
    "detail",
    "kind",
    "name",
    "key",
    "old_value",
    "new_value",
)
ACTIONS = """CASE type
    WHEN 'TopicRecord' THEN 'create topic'
    WHEN 'RemoveTopicRecord' THEN 'delete topic'
    WHEN 'ConfigRecord' THEN if(value IS NULL, 'delete config', 'set config')
    WHEN 'AccessControlEntryRecord' THEN 'create ACL'
    WHEN 'RemoveAccessControlEntryRecord' THEN 'delete ACL'
    WHEN 'ClientQuotaRecord' THEN if(remove, 'delete quota', 'set quota')
    WHEN 'UserScramCredentialRecord' THEN 'set SCRAM credential'
    WHEN 'RemoveUserScramCredentialRecord' THEN 'delete SCRAM credential'
    WHEN 'FeatureLevelRecord' THEN 'set feature'
    WHEN 'DelegationTokenRecord' THEN 'set delegation token'
    WHEN 'RemoveDelegationTokenRecord' THEN 'delete delegation token'
    WHEN 'UnregisterBrokerRecord' THEN 'unregister broker' END"""
# What a record is about: one thing's records are compared with each other, to find the value before.
SUBJECTS = """CASE
    WHEN type IN ('TopicRecord', 'RemoveTopicRecord') THEN array('topic', topic_id)
    WHEN type = 'ConfigRecord' THEN array('config', string(resource_type), resource_name, name)
    WHEN type LIKE '%AccessControlEntryRecord' THEN array('acl', id)
    WHEN type = 'ClientQuotaRecord' THEN array('quota', entity_text, key)
    WHEN type LIKE '%UserScramCredentialRecord' THEN array('scram', name, string(mechanism))
    WHEN type = 'FeatureLevelRecord' THEN array('feature', name)
    WHEN type LIKE '%DelegationTokenRecord' THEN array('token', token_id)
    ELSE array('broker', string(broker_id)) END"""
KINDS = """CASE
    WHEN type = 'ConfigRecord' THEN config_resource
    WHEN type LIKE '%AccessControlEntryRecord' THEN acl_resource
    WHEN type = 'ClientQuotaRecord' THEN 'QUOTA'
    WHEN type LIKE '%UserScramCredentialRecord' THEN 'USER'
    WHEN type = 'FeatureLevelRecord' THEN 'FEATURE'
    WHEN type LIKE '%DelegationTokenRecord' THEN 'DELEGATION_TOKEN'
    WHEN type = 'UnregisterBrokerRecord' THEN 'BROKER'
    ELSE 'TOPIC' END"""
THINGS = """CASE
    WHEN type IN ('ConfigRecord', 'AccessControlEntryRecord', 'RemoveAccessControlEntryRecord')
        THEN resource_name
    WHEN type = 'ClientQuotaRecord' THEN entity_text
    WHEN type LIKE '%DelegationTokenRecord' THEN token_id
    WHEN type = 'UnregisterBrokerRecord' THEN string(broker_id)
    WHEN type IN ('TopicRecord', 'RemoveTopicRecord') THEN coalesce(name, topic_id)
    ELSE name END"""
KEYS = """CASE
    WHEN type = 'ConfigRecord' THEN name
    WHEN type LIKE '%AccessControlEntryRecord' THEN id
    WHEN type = 'ClientQuotaRecord' THEN key
    WHEN type LIKE '%UserScramCredentialRecord' THEN mechanism_name END"""
ACL_TEXT = "concat(permission_name, ' ', principal, ' ', operation_name, ' from ', host)"
VALUES = f"""CASE type
    WHEN 'TopicRecord' THEN topic_id
    WHEN 'ConfigRecord' THEN value
    WHEN 'AccessControlEntryRecord' THEN concat({ACL_TEXT}, ', ', pattern_name)
    WHEN 'ClientQuotaRecord' THEN if(remove, NULL, string(quota_value))
    WHEN 'UserScramCredentialRecord' THEN concat(iterations, ' iterations')
    WHEN 'FeatureLevelRecord' THEN nullif(string(feature_level), '0')
    WHEN 'DelegationTokenRecord' THEN concat('owner ', owner) END"""
RESOURCES = """CASE
    WHEN type = 'ConfigRecord' THEN concat(kind, ' ', if(thing = '', '<default>', thing))
    WHEN type = 'RemoveAccessControlEntryRecord' THEN coalesce(concat(kind, ' ', thing), key_name)
    WHEN type IN ('ClientQuotaRecord', 'FeatureLevelRecord') OR type LIKE '%DelegationTokenRecord' THEN thing
    ELSE concat(kind, ' ', thing) END"""
DETAILS = f"""CASE
    WHEN type = 'ConfigRecord' THEN concat(name, if(value IS NULL, '', concat('=', value)))
    WHEN type LIKE '%AccessControlEntryRecord' THEN {ACL_TEXT}
    WHEN type = 'ClientQuotaRecord' THEN concat(key, if(remove, '', concat('=', quota_value)))
    WHEN type LIKE '%UserScramCredentialRecord' THEN mechanism_name
    WHEN type = 'FeatureLevelRecord' THEN concat('level ', feature_level)
    WHEN type = 'DelegationTokenRecord' THEN concat('owner ', owner) END"""


def audit(timeline: Timeline) -> DataFrame:
    """The table `audit`."""
    rows = _of_things(timeline).unionByName(_of_partitions(timeline)).unionByName(_of_replicas(timeline))
    return rows.orderBy("offset")


def _of_things(timeline: Timeline) -> DataFrame:
    """Operations on all but partitions, with the value that the record before set."""
    rows = timeline.history(COLUMNS, TYPES)
    entity = F.transform(
        "entity",
        lambda part: F.concat(
            part["entity_type"], F.lit(" "), F.coalesce(part["entity_name"], F.lit("<default>"))
        ),
    )
    rows = rows.withColumn("entity_text", F.array_join(F.array_sort(entity), ", "))
    rows = rows.withColumn("subject", F.expr(SUBJECTS))
    # A removal names only an id: the name of its topic, or the fields of its ACL, are in the record before.
    order = Window.partitionBy("subject").orderBy("offset")
    removes = F.col("type").isin("RemoveTopicRecord", "RemoveAccessControlEntryRecord")
    told = {
        name: F.when(removes, F.lag(name).over(order)).otherwise(F.col(name))
        for name in ("name", *ACL_FIELDS)
    }
    rows = rows.withColumns(told)
    names = {
        "config_resource": name_of("resource_type", RESOURCE_TYPES),
        "acl_resource": name_of("resource_type", ACL_RESOURCE_TYPES),
        "operation_name": name_of("operation", OPERATIONS),
        "permission_name": name_of("permission_type", PERMISSIONS),
        "pattern_name": name_of("pattern_type", PATTERN_TYPES),
        "mechanism_name": name_of("mechanism", SCRAM_MECHANISMS),
    }
    rows = rows.withColumns(names).withColumns(
        {
            "action": F.expr(ACTIONS),
            "kind": F.expr(KINDS),
            "thing": F.expr(THINGS),
            "key_name": F.expr(KEYS),
            "new_value": F.expr(VALUES),
        }
    )
    rows = rows.withColumns({"resource": F.expr(RESOURCES), "detail": F.expr(DETAILS)})
    rows = rows.withColumn("old_value", _value_before()).where("offset >= 0")
    return rows.select(
        *OPERATION[:7], F.col("thing").alias("name"), F.col("key_name").alias("key"), *OPERATION[9:]
    )


def _value_before() -> Column:
    """The value that the subject's record before set; a topic took its configs with it."""
    order = Window.partitionBy("subject").orderBy("offset")
    removal = F.when(F.col("type") == "RemoveTopicRecord", F.col("offset"))
    last_removal = F.max(removal).over(Window.partitionBy("kind", "thing").orderBy("offset"))
    is_gone = (F.col("type") == "ConfigRecord") & (F.lag("offset").over(order) < last_removal)
    return F.when(~F.coalesce(is_gone, F.lit(False)), F.lag("new_value").over(order))


def _of_partitions(timeline: Timeline) -> DataFrame:
    """Partitions that were added to a topic; those that are created with it are no operation."""
    rows = partition_replay(timeline).where("type = 'PartitionRecord' AND offset >= 0")
    rows = rows.where("created_offset IS NULL OR batch_offset > created_offset")
    on = F.array_join("replicas", ",")
    detail = F.concat(F.lit("partition "), "partition_id", F.lit(" on "), on)
    return rows.select(*_operation("add partition", detail, F.lit(None).cast("string"), on))


def _of_replicas(timeline: Timeline) -> DataFrame:
    """Reassignments that were started, and those that were cancelled."""
    steps = reassignment_steps(timeline).where("starts")
    lists = {
        name: F.coalesce(F.nullif(F.array_join(name, ","), F.lit("")), F.lit("-"))
        for name in ("adding_replicas", "removing_replicas")
    }
    old, new = F.array_join("old_replicas", ","), F.array_join("target_replicas", ",")
    detail = F.concat(
        F.lit("partition "),
        "partition_id",
        F.lit(" adding "),
        lists["adding_replicas"],
        F.lit(" removing "),
        lists["removing_replicas"],
    )
    started = steps.where("offset >= 0").select(*_operation("reassign partition", detail, old, new))
    ended = {"offset": F.col("next_offset"), "timestamp_ms": F.col("next_ms"), "epoch": F.col("end.epoch")}
    detail = F.concat(F.lit("partition "), "partition_id")
    cancelled = steps.where(F.col("outcome") == CANCELLED).withColumns(ended)
    return started.unionByName(cancelled.select(*_operation("cancel reassignment", detail, new, old)))


def _operation(action: str, detail: Column, old: Column, new: Column) -> list[Column]:
    name = F.coalesce("topic_name", "topic_id")
    return [
        *map(F.col, OPERATION[:3]),
        F.lit(action).alias("action"),
        F.concat(F.lit("TOPIC "), name).alias("resource"),
        detail.alias("detail"),
        F.lit("TOPIC").alias("kind"),
        name.alias("name"),
        F.col("partition_id").cast("string").alias("key"),
        old.alias("old_value"),
        new.alias("new_value"),
    ]
