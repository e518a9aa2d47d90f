"""Every table by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.tables import (
    access,
    audit,
    brokers,
    configs,
    intervals,
    isr,
    moves,
    partitions,
    quorum,
    reassignments,
    topics,
)
from kraftd.spark.tables.columns import COORDINATOR_TABLES
from kraftd.spark.tables.validity import with_timestamps
from kraftd.spark.timeline import Timeline


def records(timeline: Timeline) -> DataFrame:
    """The table `records`: every committed record, control records among them."""
    return timeline.log(record_schema().names).where("offset IS NOT NULL")


TABLES: dict[str, Callable[[Timeline], DataFrame]] = {
    "records": records,
    "topic_history": topics.topic_history,
    "topics": topics.topics,
    "partition_history": partitions.partition_history,
    "partitions": partitions.partitions,
    "partition_changes": partitions.partition_changes,
    "isr_history": isr.isr_history,
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


def table(name: str, timeline: Timeline, replicas: Sequence[Replica] = ()) -> DataFrame:
    """A table of a timeline, whose times are also TIMESTAMPs. Raises KeyError for a name that is none."""
    if name in timeline.made:
        return timeline.made[name]
    if name == "damaged":
        return timeline.damage()
    rows = quorum.snapshots(timeline, replicas) if name == "snapshots" else TABLES[name](timeline)
    return with_timestamps(rows)


def known_tables(names: Sequence[str] | None) -> list[str]:
    """The names, each once; those of all tables for None. Raises InputError for one that is no table's."""
    if names is None:
        return list(NAMES)
    found = [name.strip() for name in names if name.strip()]
    for name in found:
        if name not in NAMES:
            known = ", ".join((*NAMES, *COORDINATOR_TABLES))
            raise InputError(f"--tables {name}: there is no such table; there are {known}")
    return list(dict.fromkeys(found))
