"""Clusters whose controllers make many snapshots and keep little of their logs."""

from __future__ import annotations

from pathlib import Path

from kraftd.metadata_dir.files.checkpoint import parse_checkpoint_name
from kraftd.types import OffsetAndEpoch
from testkit.cluster import Cluster
from testkit.process import wait_until

COMPACTING = {
    "metadata.log.max.record.bytes.between.snapshots": 4000,
    "internal.metadata.log.segment.bytes": 4096,
    "metadata.max.retention.bytes": 6000,
    "metadata.max.idle.interval.ms": 100,
    "internal.metadata.delete.delay.millis": 100,
    "metadata.start.offset.lag.time.max.ms": 1000,
}


def snapshots(directory: Path) -> list[OffsetAndEpoch]:
    """The snapshots in a metadata directory, without the bootstrap checkpoint, oldest first."""
    found = [parse_checkpoint_name(path.name) for path in directory.glob("*.checkpoint")]
    return sorted(each for each in found if each is not None and each.offset)


def first_segment(directory: Path) -> int:
    """The offset at which the log begins; 0 while it has no segment, as between two logs."""
    return min((int(path.name[:20]) for path in directory.glob("*.log")), default=0)


def fill(cluster: Cluster, prefix: str, count: int) -> list[str]:
    """Create topics; return their names."""
    names = [f"{prefix}-{number}" for number in range(count)]
    for name in names:
        cluster.tool("topics", "--create", "--topic", name, "--partitions", 3, "--replication-factor", 1)
    return names


def wait_for_compaction(directory: Path) -> None:
    """Wait until the log begins beyond offset 0."""
    wait_until(lambda: first_segment(directory) > 0, f"{directory} begins behind offset 0", 120)
