"""Decides when a replica makes a snapshot of its log (KIP-630, KIP-876). Knows no file and no process."""

from __future__ import annotations

AFTER_FAILURE_MS = 60_000
AFTER_TRANSACTION_MS = 1_000


class SnapshotPolicy:
    """Due by bytes of records since the last snapshot, by time since then, or on demand.

    max_bytes is metadata.log.max.record.bytes.between.snapshots, max_interval_ms
    metadata.log.max.snapshot.interval.ms, 0 for never. Time counts from the start of the process, as Kafka's.
    """

    def __init__(self, max_bytes: int, max_interval_ms: int, now_ms: int) -> None:
        self.max_bytes = max_bytes
        self.max_interval_ms = max_interval_ms
        self._last_ms = now_ms
        self._not_before_ms = now_ms
        self._forgiven_bytes = 0

    def reason(self, bytes_since: int, now_ms: int) -> str | None:
        """The reason why a snapshot is due, None if none is; bytes_since are those after the last one."""
        if now_ms < self._not_before_ms:
            return None
        if bytes_since - self._forgiven_bytes >= self.max_bytes:
            return f"{bytes_since} bytes of records since the last one"
        if 0 < self.max_interval_ms <= now_ms - self._last_ms:
            return f"{(now_ms - self._last_ms) // 1000} s since the last one"
        return None

    def is_by_bytes(self, bytes_since: int) -> bool:
        """Return whether a snapshot is due by bytes: only then may too few changed records postpone it."""
        return bytes_since - self._forgiven_bytes >= self.max_bytes

    def taken(self, now_ms: int) -> None:
        """Note a new snapshot, made here or downloaded from the leader."""
        self._last_ms = now_ms
        self._forgiven_bytes = 0

    def put_off(self, bytes_since: int) -> None:
        """Postpone the snapshot, because too few records have changed, until as many bytes are added."""
        self._forgiven_bytes = bytes_since

    def failed(self, now_ms: int, wait_ms: int = AFTER_FAILURE_MS) -> None:
        """Note a failure: the next attempt is not at once."""
        self._not_before_ms = now_ms + wait_ms

    def __repr__(self) -> str:
        return f"<SnapshotPolicy every {self.max_bytes} bytes or {self.max_interval_ms} ms>"
