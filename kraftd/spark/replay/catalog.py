"""Every table by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.inputs.extent import MARKERS
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.storage import open_parquet
from kraftd.spark.replay import (
    access,
    audit,
    brokers,
    configs,
    intervals,
    moves,
    partitions,
    reassignments,
    topics,
)
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.access import ACL, REMOVED_ACL
from kraftd.spark.tables.brokers import TYPES as BROKER_TYPES
from kraftd.spark.tables.columns import Rows, as_table
from kraftd.spark.tables.quorum import snapshot_rows
from kraftd.spark.tables.topics import CREATED, REMOVED
from kraftd.spark.timeline import Timeline

TABLES: dict[str, Callable[[Replay], Rows]] = {
    "topic_history": topics.topic_history,
    "topics": topics.topics,
    "partition_history": partitions.partition_history,
    "partitions": partitions.partitions,
    "partition_changes": partitions.partition_changes,
    "isr_history": partitions.isr_history,
    "reassignments": reassignments.reassignments,
    "broker_history": brokers.broker_history,
    "brokers": brokers.brokers,
    "broker_sessions": brokers.broker_sessions,
    "config_history": configs.config_history,
    "configs": configs.configs,
    "acl_history": access.acl_history,
    "acls": access.acls,
    "quota_history": access.quota_history,
    "quotas": access.quotas,
    "features": access.features,
    "scram_users": access.scram_users,
    "producer_ids": access.producer_ids,
    "elections": access.elections,
    "partition_intervals": intervals.partition_intervals,
    "interval_totals": intervals.interval_totals,
    "leader_moves": moves.leader_moves,
    "isr_churn": moves.isr_churn,
    "audit": audit.audit,
}

WITHOUT_PARTITIONS = (
    "topic_history",
    "broker_history",
    "brokers",
    "broker_sessions",
    "config_history",
    "configs",
    "acl_history",
    "acls",
    "quota_history",
    "quotas",
    "features",
    "scram_users",
    "producer_ids",
    "elections",
)
"""The tables that are made of other records than those of partitions."""
TYPES = (
    *(CREATED, REMOVED),
    *BROKER_TYPES,
    *(ACL, REMOVED_ACL),
    "ConfigRecord",
    "ClientQuotaRecord",
    "UserScramCredentialRecord",
    "RemoveUserScramCredentialRecord",
    "FeatureLevelRecord",
    "KRaftVersionRecord",
    "ProducerIdsRecord",
    "LeaderChangeMessage",
    *MARKERS,
)
"""The records of those."""
MAX_RECORDS = 100_000
"""Most records that are replayed of a log whose partitions are left to Spark."""


def staged_replay(timeline: Timeline, *, whole: bool) -> Replay | None:
    """The replay of a staged timeline; unless whole only of TYPES, and None if these are many."""
    wanted = None if whole else pc.field("type").isin(TYPES)
    decoded = {}
    for key, path in timeline.staged_paths.items():
        dataset = open_parquet(path)
        if not whole and dataset.count_rows(filter=wanted) > MAX_RECORDS:
            return None
        # Spark writes times in a form of its own.
        decoded[key] = dataset.to_table(record_schema().names, filter=wanted).cast(record_schema())
    return Replay(timeline, decoded)


def table(name: str, replay: Replay, replicas: Sequence[Replica]) -> pa.Table:
    """A table. Raises KeyError for a name that is none."""
    if name == "records":
        return replay.records()
    if name == "damaged":
        return replay.damage()
    if name == "snapshots":
        return as_table(name, snapshot_rows(replay.extent, replicas))
    return as_table(name, TABLES[name](replay))
