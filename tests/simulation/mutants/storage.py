"""Defects below the core: what a disk is made to promise and does not keep."""

from __future__ import annotations

from typing import Any

from kraftd.storage import quorum_state
from kraftd.storage.log import MetadataLog
from kraftd.storage.memory_disk import MemoryFile


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
    """D1: a sync reports the log end of the moment in which it returns, and does half of it."""

    def sync(self: MetadataLog) -> int:
        return self.log_end

    patch.setattr(MetadataLog, "sync", sync)


ALL = {
    skip_the_sync_of_the_log: ("D1", "D2"),
    skip_the_sync_of_quorum_state: ("S2", "D2", "error"),
    report_too_much_as_synced: ("S7", "S12", "D1", "D2"),
}
