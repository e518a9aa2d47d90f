"""min.insync.replicas while eligible leader replicas are on (KIP-966): where it may be set, and what a change
clears.

An ELR is right only while every node has the same least number of in-sync replicas. So it is set for topics
and the cluster, never for one broker. A change empties the ELRs made under the old number.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.controller.configs.resources import CLUSTER, ELR_FEATURE, MIN_INSYNC_REPLICAS, ResourceType
from kraftd.controller.configs.validation import invalid_config
from kraftd.controller.configs.values import cluster_configs, node_config
from kraftd.controller.context import Context
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.wire.record_frame import VersionedRecord


def elr_enabled(ctx: Context) -> bool:
    return ctx.image.features.get(ELR_FEATURE, 0) > 0


def check_min_insync_replicas(ctx: Context, node_name: str, value: str | None) -> None:
    """Raise Refusal for an invalid new value of a node's config, or of the cluster's (name "")."""
    if not elr_enabled(ctx):
        return
    if node_name != CLUSTER:
        raise invalid_config(f"{MIN_INSYNC_REPLICAS} of a single broker cannot be changed while ELR is on.")
    if value is None:
        raise invalid_config(f"{MIN_INSYNC_REPLICAS} of the cluster cannot be removed while ELR is on.")


def clear_elr_records(ctx: Context, records: Iterable[VersionedRecord]) -> list[VersionedRecord]:
    """The records that must follow these: a change of min.insync.replicas clears the ELRs of its topic, or of
    all.
    """
    if not elr_enabled(ctx):
        return []
    cleared = []
    for message, _ in records:
        if isinstance(message, ConfigRecord) and message.name == MIN_INSYNC_REPLICAS:
            topic = message.resource_name if message.resource_type == ResourceType.TOPIC else ""
            cleared.append(VersionedRecord(ClearElrRecord(topic_name=topic), 0))
    return cleared


def elr_safety_records(ctx: Context) -> list[VersionedRecord]:
    """The records that must precede turning ELR on: the cluster gets its own min.insync.replicas, single
    brokers lose theirs.
    """
    records = []
    if MIN_INSYNC_REPLICAS not in cluster_configs(ctx):
        least = node_config(ctx).integer(MIN_INSYNC_REPLICAS)
        records.append(config_record(CLUSTER, str(least)))
    for resource_type, name in sorted(ctx.image.configs):
        single = resource_type == ResourceType.BROKER and name != CLUSTER
        if single and MIN_INSYNC_REPLICAS in ctx.image.config(resource_type, name):
            records.append(config_record(name, None))
    return records


def config_record(node_name: str, value: str | None) -> VersionedRecord:
    return VersionedRecord(ConfigRecord(ResourceType.BROKER, node_name, MIN_INSYNC_REPLICAS, value), 0)
