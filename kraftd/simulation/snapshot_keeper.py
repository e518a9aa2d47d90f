"""A process's care for its snapshots, as the daemon's: when to make them, which to let go.

The daemon's keeper runs child processes by the clock; here the same orders are carried out by the same code
at moments of virtual time, and the disk may crash, fill up or be damaged at any operation of theirs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kraftd.metadata.errors import ReplayError, UnwritableMetadataError
from kraftd.raft.events import LogStartMoved, SnapshotsDeleted, SnapshotTaken
from kraftd.server.checkpointing import (
    MADE,
    TRANSACTION,
    UNCHANGED,
    CheckpointMade,
    CheckpointOrder,
    make_checkpoint,
)
from kraftd.server.retention import KeptSnapshot, RetentionRules, new_start
from kraftd.server.snapshot_policy import AFTER_TRANSACTION_MS, SnapshotPolicy
from kraftd.simulation.schedule import MS
from kraftd.storage.checkpoint import CheckpointReader, checkpoint_path, parse_checkpoint_name, set_aside
from kraftd.storage.dump import find_dumpable, verify
from kraftd.storage.errors import CorruptStorage, StorageError
from kraftd.storage.memory_disk import SimulatedCrash
from kraftd.types import OffsetAndEpoch
from kraftd.wire.errors import ProtocolError

if TYPE_CHECKING:
    from kraftd.simulation.files import Files
    from kraftd.simulation.process import Process

LOOK_US = 500 * MS
CLEAN_EVERY_MS = 5_000
AFTER_FAILURE_MS = 2_000


class SnapshotKeeper:
    """Looks twice a second; one snapshot at a time."""

    def __init__(self, process: Process) -> None:
        options, now_ms = process.world.options, process.host.clock.now_ms(process.world.schedule.now_us)
        self.process = process
        self.world = process.world
        self.files: Files = process.files
        self.policy = SnapshotPolicy(options.snapshot_bytes, options.snapshot_interval_ms, now_ms)
        self.rules = RetentionRules(
            options.retention_bytes, options.retention_ms, options.snapshot_kept_after_read_ms
        )
        self._next_clean_ms = now_ms + CLEAN_EVERY_MS
        self._next_scrub_ms = now_ms + options.scrub_interval_ms
        self._asked = False
        self._writing: tuple[CheckpointOrder, bool] | None = None

    def start(self) -> None:
        if not self.process.ended:
            self.world.schedule.after(self.process.host.dice.between(1, LOOK_US), self._look)

    def ask(self) -> bool:
        """On demand: at the next look. False where nothing new is committed."""
        latest = self.files.log.latest_snapshot
        self._asked = self.process.core.high_watermark > (latest.offset if latest is not None else 0)
        return self._asked

    def _look(self) -> None:
        process = self.process
        if process.ended:
            return
        self.world.schedule.after(LOOK_US, self._look)
        host = process.host
        if host.paused_until_us > self.world.schedule.now_us:
            return
        now_ms = host.clock.now_ms(self.world.schedule.now_us)
        try:
            if self._writing is None:
                self._make_if_due(now_ms)
            if now_ms >= self._next_clean_ms:
                self.clean(now_ms)
            if self.world.options.scrub_interval_ms and now_ms >= self._next_scrub_ms and not process.ended:
                self._next_scrub_ms = now_ms + self.world.options.scrub_interval_ms
                self._scrub()
        except SimulatedCrash as crash:
            self.world.cluster.crashed(host, type(crash).__name__)
        except StorageError:
            pass  # a line in the daemon's log

    # --- making them ---

    @property
    def _bytes_since(self) -> int:
        log = self.files.log
        latest = log.latest_snapshot
        return log.bytes_from(latest.offset if latest is not None else log.log_start)

    def _make_if_due(self, now_ms: int) -> None:
        bytes_since = self._bytes_since
        reason = "on demand" if self._asked else self.policy.reason(bytes_since, now_ms)
        if reason is None:
            return
        process = self.process
        if process.core.high_watermark <= self._latest_end:
            self._asked = False
            return
        by_bytes = not self._asked and self.policy.is_by_bytes(bytes_since)
        order = self._order(self.world.options.snapshot_ratio if by_bytes else 0.0)
        if order is None:
            return  # still loading: at one of the next looks
        why = "on demand" if self._asked else "by bytes" if by_bytes else "by time"
        self.world.trace.kinds[f"snapshot due {why}"] += 1
        self._writing = order, self._asked
        self._asked = False
        dice = process.host.dice
        delay_us = dice.between(1 * MS, dice.choice((5, 300, 3_000)) * MS)
        self.world.schedule.after(delay_us, self._write, order)

    @property
    def _latest_end(self) -> int:
        latest = self.files.log.latest_snapshot
        return latest.offset if latest is not None else 0

    def _order(self, min_changed_ratio: float) -> CheckpointOrder | None:
        """A checkpoint of what is committed; None where that is not all here yet."""
        log, process = self.files.log, self.process
        end_offset = process.core.high_watermark
        epoch = log.epochs.epoch_of(end_offset - 1)
        if epoch is None or process.replayed_to < end_offset or log.synced_end < end_offset:
            return None
        latest = log.latest_snapshot
        base = latest if latest is not None and latest.offset > 0 else None
        return CheckpointOrder(
            directory=log.directory,
            end_offset=end_offset,
            epoch=epoch,
            base=base,
            position=log.position_near(base.offset if base is not None else log.log_start),
            min_changed_ratio=min_changed_ratio if base is not None else 0.0,
        )

    def replace(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Have a newer snapshot than that one, made now if need be, and let go of all before it."""
        process, log = self.process, self.files.log
        if self.process.ended or process.held is not None or self._writing is not None:
            return False
        try:
            if self._latest_end <= snapshot_id.offset:
                order = self._order(0.0) if process.core.high_watermark > self._latest_end else None
                if order is None:
                    return False
                now_ms = process.host.clock.now_ms(self.world.schedule.now_us)
                made = make_checkpoint(self.files.disk, order, now_ms)
                if made.outcome != MADE:
                    return False
                self._register(order, made, now_ms)
            latest = log.latest_snapshot
            assert latest is not None
            return self.start_at(latest)
        except SimulatedCrash as crash:
            self.world.cluster.crashed(process.host, type(crash).__name__)
        except StorageError:
            pass  # a line in the daemon's log
        return False

    def _write(self, order: CheckpointOrder) -> None:
        """The process beside the daemon's; what it finds on the disk is what is there by now."""
        process = self.process
        if process.asleep(self._write, order):
            return
        now_ms = process.host.clock.now_ms(self.world.schedule.now_us)
        process.host.spring_snapshot_trap()
        try:
            made = make_checkpoint(self.files.disk, order, now_ms)
        except SimulatedCrash as crash:
            self.world.cluster.crashed(process.host, type(crash).__name__)
            return
        except CorruptStorage as error:
            made = CheckpointMade(outcome="damaged", path=error.path, text=str(error))
        except (
            StorageError,
            ReplayError,
            UnwritableMetadataError,
            ProtocolError,
            FileNotFoundError,
        ) as error:
            made = CheckpointMade(outcome="failed", text=repr(error))
        self.world.schedule.after(process.host.told_delay_us(), self._written, order, made)

    def _written(self, order: CheckpointOrder, made: CheckpointMade) -> None:
        process = self.process
        if process.asleep(self._written, order, made):
            return
        now_ms = process.host.clock.now_ms(self.world.schedule.now_us)
        asked = self._writing is not None and self._writing[1]
        self._writing = None
        self.world.note("snapshot writer", process.id, made.outcome)
        self.world.trace.kinds[f"snapshot {made.outcome}"] += 1
        try:
            if made.outcome == MADE:
                self._register(order, made, now_ms)
            elif made.outcome == TRANSACTION:
                self.policy.failed(now_ms, AFTER_TRANSACTION_MS)
                self._asked = asked or self._asked
            elif made.outcome == UNCHANGED:
                self.policy.put_off(self._bytes_since)
            else:
                damaged = parse_checkpoint_name(os.path.basename(made.path))
                healed = damaged is not None and self._set_aside(damaged)
                self.policy.failed(now_ms, 0 if healed else AFTER_FAILURE_MS)
        except SimulatedCrash as crash:
            self.world.cluster.crashed(process.host, type(crash).__name__)
        except (StorageError, FileNotFoundError):
            self.policy.failed(now_ms, AFTER_FAILURE_MS)

    def _register(self, order: CheckpointOrder, made: CheckpointMade, now_ms: int) -> None:
        """Take in a new checkpoint, if it is what was ordered and the log has not been replaced meanwhile."""
        process, log, snapshot_id = self.process, self.files.log, order.snapshot_id
        path = checkpoint_path(log.directory, snapshot_id)
        if snapshot_id.offset < log.log_start:
            self.files.disk.remove(path)
            self.world.trace.kinds["snapshot made too late"] += 1
            return
        reader = CheckpointReader(self.files.disk, path)
        reader.close()
        expected = process.core.kraft_version_at(snapshot_id.offset - 1)
        if reader.size_bytes != made.size_bytes or reader.header.kraft_version != expected:
            self.world.checks.fail("S10", f"{process!r} made {made} for {order}, not of {expected}")
        log.add_snapshot(snapshot_id)
        self.world.checks.snapshot_named(process, snapshot_id)
        process.tell(SnapshotTaken(snapshot_id, made.size_bytes))
        self.policy.taken(now_ms)
        self._next_clean_ms = now_ms

    # --- letting them go ---

    def clean(self, now_ms: int) -> None:
        """Delete what retention lets go of, unless a writer reads it."""
        self._next_clean_ms = now_ms + CLEAN_EVERY_MS
        if self._writing is not None:
            return
        process, log = self.process, self.files.log
        sizes = process.core.log.snapshots
        reads = self.files.storage.snapshot_reads
        kept = [
            KeptSnapshot(each, sizes.get(each, 0), self._timestamp_ms(each), reads.get(each))
            for each in log.snapshots
        ]
        limit = min(process.core.log_start_limit, process.replayed_to)
        start = new_start(self.rules, kept, log.size_bytes_from, log.log_start, limit, now_ms)
        if start is not None:
            self.start_at(start)

    def start_at(self, start: OffsetAndEpoch) -> bool:
        """Let the log start at that snapshot; False where it does already."""
        process, log = self.process, self.files.log
        if not log.delete_before_snapshot(start):
            return False
        self.world.trace.kinds["log start moved"] += 1
        process.host.mirror.start_at(start.offset)
        self.world.checks.log_start_moved(process)
        process.tell(LogStartMoved(start.offset))
        process.tidy()
        return True

    def _timestamp_ms(self, snapshot_id: OffsetAndEpoch) -> int:
        try:
            reader = CheckpointReader(self.files.disk, checkpoint_path(self.files.log.directory, snapshot_id))
        except (CorruptStorage, FileNotFoundError):
            return 0  # of no use to anybody
        reader.close()
        return reader.header.last_contained_log_timestamp_ms

    # --- damage ---

    def check_files(self) -> None:
        """The scrub, now: reads every file; what was damaged at rest has to be found."""
        if self.process.asleep(self.check_files):
            return
        try:
            self._scrub()
        except SimulatedCrash as crash:
            self.world.cluster.crashed(self.process.host, type(crash).__name__)

    def _scrub(self) -> None:
        disk, log = self.files.disk, self.files.log
        end_offset = log.synced_end
        found: set[str] = set()
        for path in find_dumpable(disk, [log.directory]):
            for row in verify(disk, path):
                offset = row["offset"]
                if row["path"] == path and (offset is None or offset < end_offset):
                    found.add(path)
        self.world.trace.kinds["scrub"] += 1
        self.world.checks.scrubbed(self.process, found)
        for path in sorted(found):
            damaged = parse_checkpoint_name(os.path.basename(path))
            if damaged is None or not self._set_aside(damaged):
                self.world.note("scrub found what only hands can mend", self.process.id)
                self.world.cluster.mend_by_hand(self.process.host)

    def _set_aside(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Do without a damaged checkpoint; False where the log cannot do without it."""
        process, log = self.process, self.files.log
        if snapshot_id not in log.snapshots:
            return True
        others = [each for each in log.snapshots if each != snapshot_id and each.offset > 0]
        if log.log_start > 0 and not others:
            return False
        set_aside(self.files.disk, log.directory, snapshot_id)
        log.forget_snapshot(snapshot_id)
        process.tell(SnapshotsDeleted((snapshot_id,)))
        self.world.note("snapshot set aside", process.id)
        if log.log_start == snapshot_id.offset:
            self.start_at(others[0])
        return True

    def __repr__(self) -> str:
        return f"<SnapshotKeeper {self.policy!r}, {'writing' if self._writing else 'idle'}>"
