"""What checks compare, and how their findings read, whichever way a log is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import CheckpointFile, Replica

STATE = ("topics", "partitions", "brokers", "configs", "acls", "features", "quotas", "scram_users")
"""The tables by which a checkpoint is compared with the log."""
SETS = ("end_points", "features", "log_dirs")
OF_THE_LOG = ("created_offset", "created_timestamp_ms", "changed_offset", "registered_offset")
MOST_NOTES = 10
"""How many stale configs of a checkpoint are named."""


def comparable_checkpoints(extent: Extent) -> list[CheckpointFile]:
    """The checkpoints whose prefix can be replayed: from the log's beginning, or from an older checkpoint."""
    held = extent.checkpoints()
    return held if extent.source.start_offset == 0 else held[1:]


def break_text(extent: Extent, row: Mapping[str, Any]) -> str:
    """A row that breaks an invariant."""
    where = "in the checkpoint before the log" if row["offset"] < 0 else f"offset {row['offset']}"
    shown = ", ".join(f"{key} {value}" for key, value in row.items() if key != "offset")
    return f"{extent.source.replica.path}: {where}: {shown}"


def checkpoint_text(checkpoint: CheckpointFile, where: str, table: str, row: str) -> str:
    """A row that only one of a checkpoint and a log has."""
    return f"{checkpoint.path}: offset {checkpoint.end_offset}: {where} has in {table}: {row}"


def replica_text(other: Replica, offset: int | None, replica: Replica) -> str:
    """An offset at which two replicas differ."""
    return f"{other.path}: offset {offset}: another record than in {replica.path}"


def epoch_text(extent: Extent, offset: int, highest: int) -> str:
    """An epoch that goes back."""
    return f"{extent.source.replica.path}: offset {offset}: an epoch below {highest} follows it"


def note_stale_configs(
    checkpoint: CheckpointFile, stale: Sequence[tuple[Any, ...]], note: Callable[[str], None]
) -> None:
    """Note a checkpoint's first stale configs: topic, name, value, and the offset of the topic's removal."""
    for topic, name, value, removed_offset in stale[:MOST_NOTES]:
        note(
            f"{checkpoint.path}: stale config {name}={value} of topic {topic}: the topic that had it was "
            f"deleted at offset {removed_offset}. Apache Kafka keeps such configs in a checkpoint if a topic "
            "of that name is created again. A node that loads this checkpoint applies it"
        )
    if len(stale) > MOST_NOTES:
        note(f"{checkpoint.path}: more than {MOST_NOTES} stale configs")
