"""K1: nothing below the high watermark on the disk is truncated, and every truncated record has a copy."""

from __future__ import annotations

from kraftd.log.errors import StorageError
from kraftd.messages.fetch_request import FetchRequest
from kraftd.metadata_dir.files.high_watermark import read_mark
from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.wire.batch import iter_batches


class TruncationChecker(Checker):
    """A fetch after a truncation shows that the truncation is durable: then its copy must be."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._truncated: set[Process] = set()  # since their last fetch

    def effects(self) -> dict[type, OnEffect]:
        return {
            raft.TruncateLog: self.truncating,
            raft.ResetLog: self.resetting,
            raft.Send: self.sending,
        }

    def truncating(self, process: Process, effect: raft.TruncateLog) -> None:
        mark = self._mark(process)
        if effect.end_offset < mark:
            self.fail(
                "K1", f"{process!r} truncates to {effect.end_offset}, its disk says that {mark} is committed"
            )
        self._truncated.add(process)

    def resetting(self, process: Process, effect: raft.ResetLog) -> None:
        mark = self._mark(process)
        if effect.snapshot_id.offset < mark:
            self.fail(
                "K1",
                f"{process!r} begins anew at {effect.snapshot_id}, its disk says that {mark} is committed",
            )
        self._truncated.discard(process)

    def _mark(self, process: Process) -> int:
        try:
            return read_mark(process.files.disk, process.files.directory.partition_path).high_watermark
        except StorageError as error:
            self.fail("K1", f"{process!r}: {error}")

    def sending(self, process: Process, effect: raft.Send) -> None:
        if process not in self._truncated or type(effect.message) is not FetchRequest:
            return
        self._truncated.discard(process)
        dropped, disk = process.files.log.last_truncation, process.files.disk
        if dropped is None or not disk.exists(dropped.path):
            self.fail("K1", f"{process!r} has truncated its log and keeps no copy")
        batches = [one.header for one in iter_batches(disk.durable_bytes(dropped.path), verify=False)]
        if (batches[0].base_offset, batches[-1].next_offset) != (dropped.start, dropped.end):
            self.fail("K1", f"{process!r} has truncated {dropped} and keeps other records")
