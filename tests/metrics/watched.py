"""Readings of a controller without a loop, like those of a daemon."""

from __future__ import annotations

from typing import Any

from kraftd.histogram import Histogram
from kraftd.metrics.state.readings import Readings, SnapshotReadings
from kraftd.net.limits import Limits
from kraftd.net.listener import Connections
from kraftd.net.traffic import Traffic
from tests.controller_node.harness import Harness

NO_SNAPSHOTS = SnapshotReadings(
    made=Histogram(),
    made_bytes=0,
    made_ms=0,
    failures=0,
    is_making=False,
    damaged_files=0,
    downloads=0,
    downloads_refused=0,
    download_bytes=0,
)


def readings(harness: Harness, **fields: Any) -> Readings:
    node, reader = harness.node, harness.storage.snapshot_reader
    values: dict[str, Any] = {
        "now_ms": harness.clock.ms,
        "wall_ms": harness.clock.ms,
        "node": node,
        "storage": harness.storage,
        "raft": node.core.metrics(harness.clock.ms),
        "steps": Histogram(),
        "longest_step_ns": 0,
        "delays": Histogram(),
        "syncs": Histogram(),
        "idle_ratio": 1.0,
        "disk_full": node.decision_rights.disk_full,
        "stopping": node.decision_rights.stopping,
        "connections": Connections(None, Limits(), lambda _: None),  # type: ignore[arg-type]
        "quorum_traffic": Traffic(),
        "controller_traffic": Traffic(),
        "snapshots": NO_SNAPSHOTS,
        "snapshot_read": (0, 0) if reader is None else (reader.position, reader.size_bytes),
        "about": {"version": "1", "codec": "c", "kafka": "4.3.1"},
        **fields,
    }
    return Readings(**values)
