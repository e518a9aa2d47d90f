"""Counts of what was read into the image since the start, for metrics and health."""

from __future__ import annotations

from kraftd.histogram import Histogram


class LoadProgress:
    """Records and snapshots applied to all images of this node; a replaced log begins a new image.

    `snapshot_records` counts those of the image's snapshot once it is loaded; `snapshot_times` are in
    nanoseconds. `timestamp_ms` is when the last applied record was appended, -1 before.
    """

    __slots__ = (
        "_began_ms",
        "_records_before",
        "records",
        "snapshot_records",
        "snapshot_times",
        "snapshots",
        "timestamp_ms",
    )

    def __init__(self) -> None:
        self.records = 0
        self.snapshots = 0
        self.timestamp_ms = -1
        self.snapshot_records = 0
        self.snapshot_times = Histogram()
        self._began_ms = 0
        self._records_before = 0

    def begin_snapshot(self, now_ms: int) -> None:
        self._began_ms = now_ms
        self._records_before = self.records

    @property
    def snapshot_records_so_far(self) -> int:
        """The records so far of the snapshot that is being loaded."""
        return self.records - self._records_before

    def end_snapshot(self, now_ms: int) -> None:
        self.snapshots += 1
        self.snapshot_records = self.snapshot_records_so_far
        self.snapshot_times.note((now_ms - self._began_ms) * 1_000_000)

    def __repr__(self) -> str:
        return f"<LoadProgress {self.records} records, {self.snapshots} snapshots>"
