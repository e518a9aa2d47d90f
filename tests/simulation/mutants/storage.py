"""Defects of the storage below the core: promises of a disk that it does not keep."""

from __future__ import annotations

from typing import Any

from kraftd.controller_node.events import DiskFilled, DiskHasRoom
from kraftd.controller_node.node import Node
from kraftd.host.storage import Storage
from kraftd.host.upkeep import scrubbing
from kraftd.log.kept_records import KeptRecords
from kraftd.log.memory_disk import MemoryFile
from kraftd.metadata_dir.files import quorum_state
from kraftd.metadata_dir.metadata_log import MetadataLog
from tests.simulation.mutants.planted import Planted


def skip_the_sync_of_the_log(patch: Any) -> None:
    """D1: the log is written and never synced."""
    sync = MemoryFile.sync

    def unsynced(self: MemoryFile) -> None:
        if not self.path.endswith(".log"):
            sync(self)

    patch.setattr(MemoryFile, "sync", unsynced)


def skip_the_sync_of_quorum_state(patch: Any) -> None:
    """S2: quorum-state is replaced without a sync."""

    def write(disk: Any, path: str, data: bytes) -> None:
        disk.remove(path)
        file = disk.open(path, create=True)
        file.write(0, data)

    patch.setattr(quorum_state, "write_atomically", write)


def report_too_much_as_synced(patch: Any) -> None:
    """D1: a sync does nothing and reports the log end as synced."""

    def sync(self: MetadataLog) -> int:
        return self.log_end

    patch.setattr(MetadataLog, "sync", sync)


def forget_to_write_the_epoch(patch: Any) -> None:
    """S2: quorum-state is written only while there is none."""
    persist = Storage.persist_election

    def once(self: Storage, *arguments: Any, **options: Any) -> None:
        if self._quorum_state.read() is None:
            persist(self, *arguments, **options)

    patch.setattr(Storage, "persist_election", once)


def give_out_what_was_damaged(patch: Any) -> None:
    """D3: batches that are read from a segment are not checked."""
    patch.setattr(MetadataLog, "_check_read", lambda self, *arguments: None)


def scrub_blindly(patch: Any) -> None:
    """D3: a scrub reads no file."""
    patch.setattr(scrubbing, "verify", lambda disk, path: iter(()))


def lead_on_with_a_full_disk(patch: Any) -> None:
    """D4: a leader with a full disk does not resign."""

    def on_disk_filled(self: Any, event: Any) -> None:
        self.decision_rights.disk_full = True

    _handle(patch, DiskFilled, on_disk_filled)


def decide_with_a_full_disk(patch: Any) -> None:
    """D4: a node with a full disk continues to decide."""
    _handle(patch, DiskFilled, lambda self, event: None)


def never_notice_that_there_is_room(patch: Any) -> None:
    """D4: a node continues to refuse requests when its disk has room again."""
    _handle(patch, DiskHasRoom, lambda self, event: None)


def _handle(patch: Any, kind: type, handler: Any) -> None:
    step = Node.step

    def handled(self: Any, event: Any, now_ms: int) -> Any:
        if type(event) is kind:
            handler(self, event)
            return []
        return step(self, event, now_ms)

    patch.setattr(Node, "step", handled)


FULL: dict[str, Any] = {"controllers": True, "faults": ("full disk",), "fault_gap_us": 300_000}
ROTTEN: dict[str, Any] = {
    "faults": ("damage segment", "kill"),
    "observer_count": 2,
    "segment_bytes": 2_000,
    "snapshot_bytes": 1 << 30,
    "snapshot_interval_ms": 0,
    "fault_gap_us": 300_000,
}


def truncate_without_a_copy(patch: Any) -> None:
    """K1: the records that a truncation drops are gone."""
    patch.setattr(KeptRecords, "write", lambda self, path, sources: None)


ALL: dict[Any, Planted] = {
    truncate_without_a_copy: Planted("K1"),
    skip_the_sync_of_the_log: Planted("D2", "D1"),
    report_too_much_as_synced: Planted("D1", "S7", "S12", "D2"),
    skip_the_sync_of_quorum_state: Planted("S2", "D2", "error"),
    forget_to_write_the_epoch: Planted("S2", "D2"),  # a start refuses a file older than its log
    give_out_what_was_damaged: Planted("D3", "C1", "S10", "error", controllers=True, **ROTTEN),
    scrub_blindly: Planted("D3", scrub_interval_ms=5_000, **ROTTEN),
    lead_on_with_a_full_disk: Planted("D4", voter_count=3, **FULL),
    decide_with_a_full_disk: Planted("D4", voter_count=1, **FULL),
    never_notice_that_there_is_room: Planted("D4", "error", voter_count=1, **FULL),
}
