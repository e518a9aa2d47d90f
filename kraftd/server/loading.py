"""What has been read into the image since the start, in numbers: for metrics, and for who waits for it."""

from __future__ import annotations

from kraftd.histogram import Histogram


class Loading:
    """Records and snapshots applied to images of this node, however often it begins a new one.

    `timestamp_ms` is when the last record that was applied was appended, as far as that is known, else -1;
    `snapshot_times` are in nanoseconds.
    """

    __slots__ = ("_began_ms", "records", "snapshot_times", "snapshots", "timestamp_ms")

    def __init__(self) -> None:
        self.records = 0
        self.snapshots = 0
        self.timestamp_ms = -1
        self.snapshot_times = Histogram()
        self._began_ms = 0

    def begin_snapshot(self, now_ms: int) -> None:
        self._began_ms = now_ms

    def end_snapshot(self, now_ms: int) -> None:
        self.snapshots += 1
        self.snapshot_times.note((now_ms - self._began_ms) * 1_000_000)

    def __repr__(self) -> str:
        return f"<Loading {self.records} records, {self.snapshots} snapshots>"
