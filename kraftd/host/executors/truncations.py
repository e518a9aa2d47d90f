"""Tells of every truncation of the log: a line for the operator, and counts for the metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.host.ports import Log
from kraftd.log.kept_records import Truncation
from kraftd.log.partition_log import PartitionLog
from kraftd.named_tuple import NamedTuple
from kraftd.raft import effects as raft


class LastTruncation(NamedTuple):
    """The records that the last truncation dropped, the leader whose log lacks them, its epoch, the time."""

    truncation: Truncation
    leader_id: int
    leader_epoch: int
    at_ms: int

    @property
    def fields(self) -> dict[str, Any]:
        """As fields of a line for the operator, or of JSON."""
        of = self.truncation
        return {
            "from_offset": of.start,
            "to_offset": of.end,
            "records": of.records,
            "epochs": of.epochs,
            "leader": self.leader_id,
            "leader_epoch": self.leader_epoch,
            "kept_in": of.path,
        }


class Truncations:
    """The truncations since the start: how many, of how many records, and the last one. on_truncated gets the
    fields of each.
    """

    def __init__(self, log: PartitionLog, lines: Log, wall_ms: Callable[[], int]) -> None:
        self.count = 0
        self.records = 0
        self.last: LastTruncation | None = None
        self.on_truncated: Callable[[dict[str, Any]], object] | None = None
        self._log = log
        self._lines = lines
        self._wall_ms = wall_ms

    def __repr__(self) -> str:
        return f"<Truncations {self.count} of {self.records} records>"

    def truncated(self, effect: raft.TruncateLog) -> None:
        """Report that the log was just truncated."""
        found = self._log.last_truncation
        assert found is not None
        self._count(found, effect)

    def replaced(self, effect: raft.ResetLog, log_end: int) -> None:
        """Report that a leader's snapshot has just replaced the log, which ended at `log_end`.

        A log that ends before the snapshot's end may well be a part of it, so its rest counts as no
        truncation.
        """
        found = self._log.last_truncation
        if found is None or effect.keep_from >= log_end:
            return
        if log_end > effect.snapshot_id.offset:
            self._count(found, effect)
        else:
            fields = LastTruncation(found, effect.leader_id, effect.leader_epoch, self._wall_ms()).fields
            self._lines.info("the leader's snapshot replaces the log; its uncommitted end was kept", **fields)

    def _count(self, found: Truncation, effect: raft.TruncateLog | raft.ResetLog) -> None:
        self.count += 1
        self.records += found.records
        self.last = LastTruncation(found, effect.leader_id, effect.leader_epoch, self._wall_ms())
        self._lines.warning("the log was truncated: the leader's log lacks these records", **self.last.fields)
        if self.on_truncated is not None:
            self.on_truncated(self.last.fields)
