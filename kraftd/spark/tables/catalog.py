"""Every table by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from kraftd.spark.fields import record_schema
from kraftd.spark.layout import Replica
from kraftd.spark.tables import access, audit, brokers, intervals, moves, partitions, quorum, topics
from kraftd.spark.timeline import Timeline


def records(timeline: Timeline) -> DataFrame:
    """The table `records`: every committed record, control records among them."""
    return timeline.log(record_schema().names).where("offset IS NOT NULL")


TABLES: dict[str, Callable[[Timeline], DataFrame]] = {
    "records": records,
    "topics": topics.topics,
    "partitions": partitions.partitions,
    "partition_changes": partitions.partition_changes,
    "brokers": brokers.brokers,
    "broker_sessions": brokers.broker_sessions,
    "configs": access.configs,
    "acls": access.acls,
    "features": access.features,
    "quotas": access.quotas,
    "scram_users": access.scram_users,
    "producer_ids": access.producer_ids,
    "elections": quorum.elections,
    "partition_intervals": intervals.partition_intervals,
    "interval_totals": intervals.interval_totals,
    "leader_moves": moves.leader_moves,
    "isr_churn": moves.isr_churn,
    "audit": audit.audit,
}
NAMES = (*TABLES, "snapshots")
WITHOUT_LOG = frozenset(("records", "snapshots"))
"""Those that read nothing that was decoded for others."""


def table(name: str, timeline: Timeline, replicas: Sequence[Replica]) -> DataFrame:
    """A table of a timeline. Raises KeyError for a name that is none."""
    if name in timeline.made:
        return timeline.made[name]
    if name == "snapshots":
        return quorum.snapshots(timeline, replicas)
    if name == "damaged":
        return timeline.damage()
    return TABLES[name](timeline)
