"""S4, S6, S9, S12 and the durability of disks (D1): all logs compared, batch by batch.

Log matching by induction: a batch of an epoch at an offset is registered once, with the batch before it;
any other replica that writes one there must write the same bytes behind the same batch.
"""

from __future__ import annotations

from kraftd.messages.fetch_request import FetchRequest
from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.mirror import Entry, LogMirror, entry_of
from kraftd.simulation.processes.process import Process
from kraftd.wire.batch import Batch, iter_batches

_UNKNOWN = -1


class LogChecker(Checker):
    """`registry`: (epoch, base offset) to (checksum, end, epoch of the record before)."""

    def effects(self) -> dict[type, OnEffect]:
        return {
            raft.AppendRecords: self.appending,
            raft.TruncateLog: self.truncating,
            raft.ResetLog: self.resetting,
            raft.Send: self.sending,
        }

    def started(self, process: Process) -> None:
        """D1: synced records are still there and unchanged, and S4 holds for all of them."""
        host, log = process.host, process.files.log
        before = host.mirror
        if host.was_damaged:  # it cannot be read completely, and must hold exactly the synced records
            if log.log_end != before.end:
                self.fail("D3", f"{process!r}: synced to {before.end}, finds a damaged log to {log.log_end}")
            before.start_at(log.log_start)
            return
        latest = log.snapshots[0] if log.snapshots else None
        start_epoch = latest.epoch if latest is not None and latest.offset == log.log_start else 0
        batches = list(process.files.batches(log.log_start))
        found = LogMirror.of(batches, log.log_start, start_epoch)
        if found.end < before.synced_end:
            self.fail("D1", f"{process!r}: synced to {before.synced_end}, finds a log to {found.end}")
        for entry in before.between(max(found.start, before.start), before.synced_end):
            if found.entry_before(entry.end) != entry:
                self.fail("D1", f"{process!r}: {entry} was synced, finds {found.entry_before(entry.end)}")
        previous = _UNKNOWN if found.start else 0
        for entry, batch in zip(found.entries, batches, strict=True):
            self._match(process, entry, previous, batch)
            previous = entry.epoch
        host.mirror = found
        self.world.cluster.directories[host.id, host.directory_id] = found

    def appending(self, process: Process, effect: raft.AppendRecords) -> None:
        mirror = process.host.mirror
        previous = mirror.last_epoch if mirror.entries or not mirror.start else _UNKNOWN
        for batch in iter_batches(effect.data, verify=False):
            entry = entry_of(batch)
            if entry.base != mirror.end:
                self.fail("S4", f"{process!r} appends {entry} to a log that ends at {mirror.end}")
            self._match(process, entry, previous, batch)
            mirror.add(entry)
            previous = entry.epoch

    def _match(self, process: Process, entry: Entry, previous: int, batch: Batch | None = None) -> None:
        key = entry.epoch, entry.base
        seen = self.world.registry.get(key)
        if seen is None:
            seen = self.world.registry[key] = entry.crc, entry.end, previous
            if batch is not None:
                self.world.reference.batches[key] = bytes(batch.view)
        if seen[0] != entry.crc or seen[1] != entry.end:
            self.fail("S4", f"{process!r} writes {entry}, elsewhere the same offset and epoch hold {seen}")
        if seen[2] != previous and _UNKNOWN not in (seen[2], previous):
            self.fail(
                "S4", f"{process!r} writes {entry} behind epoch {previous}, elsewhere behind epoch {seen[2]}"
            )

    def truncating(self, process: Process, effect: raft.TruncateLog) -> None:
        if effect.end_offset < process.core.high_watermark:
            self.fail("S9", f"{process!r} truncates to {effect.end_offset}")
        committed = self.world.committed
        for entry in process.host.mirror.truncate(effect.end_offset):
            if entry.end <= committed.end and committed.entry_before(entry.end) == entry:
                self.fail("S9", f"{process!r} truncates {entry}, which is committed")

    def resetting(self, process: Process, effect: raft.ResetLog) -> None:
        shown = self.world.checks.commits.shown(process)
        if effect.snapshot_id.offset < shown:
            self.fail("S9", f"{process!r} goes back to {effect.snapshot_id}, has shown {shown} as committed")
        process.host.mirror.reset(effect.snapshot_id.offset, effect.snapshot_id.epoch)

    def sending(self, process: Process, effect: raft.Send) -> None:
        message = effect.message
        if type(message) is FetchRequest:
            offset = message.topics[0].partitions[0].fetch_offset
            if offset > process.host.mirror.synced_end:
                self.fail(
                    "S12", f"{process!r} fetches at {offset}, synced to {process.host.mirror.synced_end}"
                )
