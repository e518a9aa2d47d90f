"""Admin operations in the order in which they took effect. The log does not name the principal of an
operation.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.tables.access import (
    ACL_RESOURCE_TYPES,
    MECHANISMS,
    OPERATIONS,
    PERMISSIONS,
    RESOURCE_TYPES,
    name_of,
)
from kraftd.spark.tables.topics import topic_lives
from kraftd.spark.timeline import Timeline

TYPES = (
    "TopicRecord",
    "RemoveTopicRecord",
    "PartitionRecord",
    "PartitionChangeRecord",
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
    "batch_offset",
    "type",
    "topic_id",
    "partition_id",
    "name",
    "resource_type",
    "resource_name",
    "value",
    "id",
    "principal",
    "host",
    "operation",
    "permission_type",
    "entity",
    "key",
    "quota_value",
    "remove",
    "mechanism",
    "feature_level",
    "token_id",
    "owner",
    "broker_id",
    "replicas",
    "adding_replicas",
    "removing_replicas",
)
ACL_FIELDS = ("resource_type", "resource_name", "principal", "host", "operation", "permission_type")
ACTIONS = """CASE type
    WHEN 'TopicRecord' THEN 'create topic'
    WHEN 'RemoveTopicRecord' THEN 'delete topic'
    WHEN 'PartitionRecord' THEN 'add partition'
    WHEN 'PartitionChangeRecord' THEN 'reassign partition'
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
RESOURCES = """CASE type
    WHEN 'ConfigRecord' THEN concat(config_resource, ' ', if(resource_name = '', '<default>', resource_name))
    WHEN 'AccessControlEntryRecord' THEN concat(acl_resource, ' ', resource_name)
    WHEN 'RemoveAccessControlEntryRecord' THEN coalesce(concat(acl_resource, ' ', resource_name), id)
    WHEN 'ClientQuotaRecord' THEN array_join(transform(entity,
        part -> concat(part.entity_type, ' ', coalesce(part.entity_name, '<default>'))), ', ')
    WHEN 'UserScramCredentialRecord' THEN concat('USER ', name)
    WHEN 'RemoveUserScramCredentialRecord' THEN concat('USER ', name)
    WHEN 'FeatureLevelRecord' THEN name
    WHEN 'DelegationTokenRecord' THEN token_id
    WHEN 'RemoveDelegationTokenRecord' THEN token_id
    WHEN 'UnregisterBrokerRecord' THEN concat('BROKER ', broker_id)
    ELSE concat('TOPIC ', coalesce(topic_name, topic_id)) END"""
DETAILS = """CASE type
    WHEN 'ConfigRecord' THEN concat(name, if(value IS NULL, '', concat('=', value)))
    WHEN 'AccessControlEntryRecord' THEN concat_ws(' ', permission_name, principal, operation_name, 'from',
    host)
    WHEN 'RemoveAccessControlEntryRecord' THEN concat(permission_name, ' ', principal, ' ', operation_name,
    ' from ', host)
    WHEN 'ClientQuotaRecord' THEN concat(key, if(remove, '', concat('=', quota_value)))
    WHEN 'UserScramCredentialRecord' THEN mechanism_name
    WHEN 'RemoveUserScramCredentialRecord' THEN mechanism_name
    WHEN 'FeatureLevelRecord' THEN concat('level ', feature_level)
    WHEN 'DelegationTokenRecord' THEN concat('owner ', owner)
    WHEN 'PartitionRecord' THEN concat('partition ', partition_id, ' on ', array_join(replicas, ','))
    WHEN 'PartitionChangeRecord' THEN concat('partition ', partition_id,
        ' adding ', coalesce(array_join(adding_replicas, ','), '-'),
        ' removing ', coalesce(array_join(removing_replicas, ','), '-')) END"""


def audit(timeline: Timeline) -> DataFrame:
    """The table `audit`."""
    rows = timeline.history(COLUMNS, TYPES).where("offset >= 0")
    lives = topic_lives(timeline, whole=True).select(
        "topic_id", F.col("name").alias("topic_name"), "created_offset"
    )
    rows = rows.join(lives, "topic_id", "left")
    # Partitions that are created with their topic are no operation of their own, nor are changes that keep
    # the set of replicas.
    rows = rows.where("type != 'PartitionRecord' OR created_offset IS NULL OR batch_offset > created_offset")
    started = "size(adding_replicas) > 0 OR size(removing_replicas) > 0"
    rows = rows.where(f"type != 'PartitionChangeRecord' OR {started}")
    rows = _with_removed_acls(timeline, rows)
    names = {
        "config_resource": name_of("resource_type", RESOURCE_TYPES),
        "acl_resource": name_of("resource_type", ACL_RESOURCE_TYPES),
        "operation_name": name_of("operation", OPERATIONS),
        "permission_name": name_of("permission_type", PERMISSIONS),
        "mechanism_name": name_of("mechanism", MECHANISMS),
    }
    return (
        rows.withColumns(names)
        .select(
            "offset",
            "epoch",
            "timestamp_ms",
            F.expr(ACTIONS).alias("action"),
            F.expr(RESOURCES).alias("resource"),
            F.expr(DETAILS).alias("detail"),
        )
        .orderBy("offset")
    )


def _with_removed_acls(timeline: Timeline, rows: DataFrame) -> DataFrame:
    """The rows, with the fields of the removed ACL in each removal, whose record names only an id."""
    made = timeline.history(["id", *ACL_FIELDS], ["AccessControlEntryRecord"])
    made = made.groupBy("id").agg(F.first(F.struct(*ACL_FIELDS)).alias("removed_acl"))
    is_removal = F.col("type") == "RemoveAccessControlEntryRecord"
    fields = {
        name: F.when(is_removal, F.col("removed_acl")[name]).otherwise(F.col(name)) for name in ACL_FIELDS
    }
    return rows.join(made, "id", "left").withColumns(fields)
