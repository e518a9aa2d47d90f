"""S10, S11: snapshots hold committed state, equal the log, and only followers load them; D3."""

from __future__ import annotations

from kraftd.metadata.image import Image
from kraftd.metadata_dir.files.checkpoint import CheckpointHeader
from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.process import Process
from kraftd.simulation.processes.state import image_values
from kraftd.types import OffsetAndEpoch
from kraftd.wire.record_frame import decode_record


class SnapshotChecker(Checker):
    """Compares the first snapshot of an id with the log, and every other of the same id with the first."""

    def effects(self) -> dict[type, OnEffect]:
        return {raft.ResetLog: self.resetting, raft.BeginSnapshot: self.beginning}

    def beginning(self, process: Process, effect: raft.BeginSnapshot) -> None:
        if process.core.is_leader:
            self.fail("S11", f"{process!r} downloads {effect.snapshot_id}")

    def resetting(self, process: Process, effect: raft.ResetLog) -> None:
        if process.core.is_leader:
            self.fail("S11", f"{process!r} loads {effect.snapshot_id}")
        self.world.trace.kinds["snapshot loaded"] += 1

    def named(self, process: Process, snapshot_id: OffsetAndEpoch) -> None:
        """Check a checkpoint that got its name: made here, or downloaded."""
        committed = self.world.committed
        if snapshot_id.offset > committed.end:
            self.fail("S10", f"{process!r} has a snapshot at {snapshot_id}, committed is {committed.end}")
        entry = committed.entry_before(snapshot_id.offset)
        if entry is None or (entry.end, entry.epoch) != snapshot_id:
            self.fail("S10", f"{process!r} has a snapshot {snapshot_id}, the log has {entry} there")
        reader = process.files.reader(snapshot_id)
        values = [bytes(value) for batch in reader.values() for value in batch]
        first = self.world.snapshots.get(snapshot_id)
        if first is not None:
            if first != (reader.header.kraft_version, reader.header.voters, values):
                self.fail(
                    "S10", f"{process!r}: snapshot {snapshot_id} holds something else than another of that id"
                )
            return
        self.world.snapshots[snapshot_id] = reader.header.kraft_version, reader.header.voters, values
        self._equals_the_prefix(process, snapshot_id, reader.header, values)

    def _equals_the_prefix(
        self, process: Process, snapshot_id: OffsetAndEpoch, header: CheckpointHeader, values: list[bytes]
    ) -> None:
        """Check that it equals the committed log up to its end, and reads back as the same."""
        replayed = self.world.reference.at(snapshot_id.offset)
        if replayed.waiting is not None:
            self.fail("S10", f"{process!r} has a snapshot {snapshot_id} inside of a transaction")
        if values != image_values(replayed.image):
            self.fail("S10", f"{process!r}: snapshot {snapshot_id} is not the log up to there")
        image = Image()
        for value in values:
            image.apply(decode_record(value).message, snapshot_id.offset - 1, snapshot_id.epoch)
        if image != replayed.image:
            self.fail("S10", f"{process!r}: snapshot {snapshot_id} does not read as what it was made of")
        last = snapshot_id.offset - 1
        version, voters = replayed.history.kraft_version_at(last), replayed.history.voters_at(last)
        expected = voters.to_record() if version and len(voters) else None
        if (header.kraft_version, header.voters) != (version, expected):
            self.fail(
                "S10", f"{process!r}: snapshot {snapshot_id} has {header}, not {version} and {voters!r}"
            )

    def log_start(self, process: Process) -> None:
        """Check that the log begins at 0 or at the end of a snapshot."""
        log = process.files.log
        start = log.log_start
        if start and all(one.offset != start for one in log.snapshots):
            self.fail("S10", f"{process!r} has a log from {start} on, snapshots at {log.snapshots}")

    def log_start_moved(self, process: Process) -> None:
        """Check that a follower's log start never passes its leader's."""
        self.log_start(process)
        core = process.core
        leader: Process | None = self.world.cluster.leader()
        if leader is None or leader is process or core.epoch != leader.core.epoch:
            return
        log = process.files.log
        if log.log_start > leader.files.log.log_start and not process.host.was_damaged:
            self.fail(
                "S10",
                f"{process!r} begins with {log.log_start}, its leader with {leader.files.log.log_start}",
            )

    def scrubbed(self, process: Process, found: set[str]) -> None:
        """D3: a scrub finds all damage, and nothing else.

        It may leave out records that the log has truncated, but the disk still has.
        """
        damaged = process.host.damaged
        ends = {segment.path(): segment.end_position for segment in process.files.log.segments}
        cut_off = {path for path, at in damaged.items() if at >= ends.get(path, at + 1)}
        if not damaged.keys() - cut_off <= found <= damaged.keys():
            self.fail("D3", f"{process!r}: damaged is {sorted(damaged)}, a scrub finds {sorted(found)}")
        if damaged:
            self.world.trace.kinds["damage found by a scrub"] += 1
