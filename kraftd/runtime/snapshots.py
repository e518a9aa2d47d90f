"""The daemon's care for its snapshots: has them made when due, lets old ones go, has all files checked.

What costs time runs in processes beside this one, one at a time of each kind; here is only when, and what
follows when they are done. Looks twice a second.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from kraftd.config import DaemonConfig
from kraftd.histogram import Histogram
from kraftd.raft.events import LogStartMoved, SnapshotsDeleted, SnapshotTaken
from kraftd.runtime.child import Child, ChildEnded
from kraftd.server.checkpointing import (
    DAMAGED,
    MADE,
    TRANSACTION,
    UNCHANGED,
    CheckpointMade,
    CheckpointOrder,
)
from kraftd.server.retention import KeptSnapshot, RetentionRules, new_start
from kraftd.server.snapshot_policy import AFTER_TRANSACTION_MS, SnapshotPolicy
from kraftd.server.snapshot_request import SnapshotAnswer, answer, name_of, take_request
from kraftd.storage.checkpoint import (
    CheckpointReader,
    checkpoint_path,
    parse_checkpoint_name,
    part_name,
    set_aside,
)
from kraftd.storage.errors import CorruptStorage, StorageError
from kraftd.types import OffsetAndEpoch

if TYPE_CHECKING:
    from kraftd.runtime.runner import Runner

LOOK_S = 0.5
CLEAN_EVERY_MS = 60_000  # as Kafka's cleaner
WRITER, SCRUBBER = "kraftd.runtime.snapshot_writer", "kraftd.runtime.scrubber"


class SnapshotKeeper:
    """Looks after the snapshots of one runner's node. `stop` ends what it has started."""

    def __init__(self, runner: Runner, config: DaemonConfig) -> None:
        self.runner = runner
        self.storage = runner.storage
        self.log: Any = runner.log
        now_ms = runner.clock.now_ms()
        self.policy = SnapshotPolicy(
            config.metadata_snapshot_max_new_record_bytes, config.metadata_snapshot_max_interval_ms, now_ms
        )
        self.rules = RetentionRules(
            config.metadata_max_retention_bytes,
            config.metadata_max_retention_ms,
            config.metadata_delete_delay_ms,
        )
        self._min_changed_ratio = config.metadata_snapshot_min_changed_ratio
        self._timeout_ms = config.metadata_snapshot_timeout_ms
        self._scrub_interval_ms = config.scrub_interval_ms
        self._next_scrub_ms = now_ms + config.scrub_interval_ms
        self._next_clean_ms = now_ms + CLEAN_EVERY_MS
        self._writer: Child | None = None
        self._scrubber: Child | None = None
        self._order: CheckpointOrder | None = None
        self._started_ms = 0
        self._overdue = False  # the writer was told to end
        self.failures = 0  # snapshots that could not be made since the start
        self._asked: str | None = None  # the request that waits for the next snapshot
        self._answering: str | None = None  # the request that the one under way answers
        self._timestamps: dict[OffsetAndEpoch, int] = {}
        # For metrics: the times of those made, in nanoseconds; of the latest, size and when it was made
        # (before the first, when this started); files that were found damaged.
        self.made = Histogram()
        self.made_bytes = 0
        self.made_ms = now_ms
        self.damaged_files = 0
        self._timer = runner.loop.call_later(LOOK_S, self._look)

    def stop(self) -> None:
        """No more looks; whatever runs is ended, and its unfinished file removed."""
        self._timer.cancel()
        for child in (self._writer, self._scrubber):
            if child is not None:
                child.kill()
        if self._writer is not None and self._order is not None:
            name = part_name(self._order.snapshot_id, download=False)
            self.storage.disk.remove(f"{self._order.directory}/{name}")

    def _look(self) -> None:
        self._timer = self.runner.loop.call_later(LOOK_S, self._look)
        try:
            self.look()
        except StorageError as error:
            self.log.error("snapshots cannot be looked after", error=str(error))

    @property
    def is_making(self) -> bool:
        return self._writer is not None

    def look(self) -> None:
        """Start what is due."""
        now_ms = self.runner.clock.now_ms()
        self._asked = take_request(self.storage.disk, self.storage.directory.path) or self._asked
        if self._writer is None:
            # In this order: where a snapshot is due all the time, nothing would ever go otherwise.
            if now_ms >= self._next_clean_ms:
                self.clean(now_ms)
            self._make_if_due(now_ms)
        elif not self._overdue and now_ms - self._started_ms >= self._timeout_ms:
            self._overdue = True
            self.log.error("the process that makes a snapshot hangs: it is killed", pid=self._writer.pid)
            self._writer.give_up()
        if self._scrub_interval_ms and now_ms >= self._next_scrub_ms:
            self._next_scrub_ms = now_ms + self._scrub_interval_ms
            self._scrub()

    # -- making them

    @property
    def _bytes_since(self) -> int:
        log = self.storage.log
        latest = log.latest_snapshot
        return log.bytes_from(latest.offset if latest is not None else log.log_start)

    def _make_if_due(self, now_ms: int) -> None:
        bytes_since = self._bytes_since
        reason = "it was asked for" if self._asked else self.policy.reason(bytes_since, now_ms)
        if reason is None:
            return
        log, node = self.storage.log, self.runner.node
        end_offset = node.core.high_watermark
        latest = log.latest_snapshot
        if end_offset <= (latest.offset if latest is not None else 0):
            self._answer(latest if latest is not None and latest.offset > 0 else None)
            return
        epoch = log.epochs.epoch_of(end_offset - 1)
        if epoch is None or node.replay.next_offset < end_offset or log.synced_end < end_offset:
            return  # still loading: at one of the next looks
        base = latest if latest is not None and latest.offset > 0 else None
        by_bytes = self._asked is None and self.policy.is_by_bytes(bytes_since)
        self._order = CheckpointOrder(
            directory=log.directory,
            end_offset=end_offset,
            epoch=epoch,
            base=base,
            position=log.position_near(base.offset if base is not None else log.log_start),
            min_changed_ratio=self._min_changed_ratio if by_bytes and base is not None else 0.0,
        )
        self._started_ms, self._overdue = now_ms, False
        self._answering, self._asked = self._asked, None
        self.log.info("making a snapshot", snapshot=name_of(self._order.snapshot_id), because=reason)
        self._writer = self._child(WRITER, [msgspec.json.encode(self._order).decode()], self._written)

    def _written(self, ended: ChildEnded) -> None:
        order, self._order, self._writer = self._order, None, None
        assert order is not None
        now_ms = self.runner.clock.now_ms()
        if ended.exit_code != 0:
            why = ended.err or f"the process ended with {ended.exit_code}"
            if self._overdue:
                why = f"it was not done after {self._timeout_ms} ms (kraftd.metadata.snapshot.timeout.ms)"
            self._failed(order, why, now_ms)
            return
        made = msgspec.json.decode(ended.out, type=CheckpointMade)
        if made.outcome == MADE:
            try:
                self._register(order, made, now_ms)
            except (StorageError, FileNotFoundError) as error:
                self._failed(order, str(error), now_ms)
            self._next_clean_ms = now_ms  # at the next look
        elif made.outcome == TRANSACTION:
            self.policy.failed(now_ms, AFTER_TRANSACTION_MS)
            self._asked = self._answering or self._asked
        elif made.outcome == UNCHANGED:
            self.policy.put_off(self._bytes_since)
            ratio = round(made.changed_ratio, 4)
            self.log.info("no snapshot: too few records have changed", changed_ratio=ratio)
        elif made.outcome == DAMAGED:
            damaged = parse_checkpoint_name(os.path.basename(made.path))
            healed = damaged is not None and self._set_aside(damaged, made.text)
            self._failed(order, made.text, now_ms, wait_ms=0 if healed else None)

    def _register(self, order: CheckpointOrder, made: CheckpointMade, now_ms: int) -> None:
        """Take in a new checkpoint, if it is what was ordered and the log has not been replaced meanwhile."""
        log, core, snapshot_id = self.storage.log, self.runner.node.core, order.snapshot_id
        path = checkpoint_path(log.directory, snapshot_id)
        if snapshot_id.offset < log.log_start:
            self.storage.disk.remove(path)
            return
        reader = CheckpointReader(self.storage.disk, path)
        reader.close()
        expected = core.kraft_version_at(snapshot_id.offset - 1)
        if reader.size_bytes != made.size_bytes or reader.header.kraft_version != expected:
            raise CorruptStorage(
                path,
                0,
                snapshot_id.offset,
                f"{reader.size_bytes} bytes of kraft.version {reader.header.kraft_version}, "
                f"expected were {made.size_bytes} of {expected}",
                "Remove the file; another is made in a while",
            )
        log.add_snapshot(snapshot_id)
        self.runner.step(SnapshotTaken(snapshot_id, made.size_bytes))
        self.policy.taken(now_ms)
        self.made.note((now_ms - self._started_ms) * 1_000_000)
        self.made_bytes, self.made_ms = made.size_bytes, now_ms
        self.log.info(
            "snapshot made",
            snapshot=name_of(snapshot_id),
            size_bytes=made.size_bytes,
            records=made.record_count,
            took_ms=now_ms - self._started_ms,
        )
        self._answer(snapshot_id, made.size_bytes)

    def _failed(self, order: CheckpointOrder, why: str, now_ms: int, wait_ms: int | None = None) -> None:
        self.failures += 1
        self.log.error("a snapshot could not be made", snapshot=name_of(order.snapshot_id), error=why)
        # A writer that was killed could not take its file away.
        part = f"{order.directory}/{part_name(order.snapshot_id, download=False)}"
        self.runner.loop.run_in_executor(None, self.storage.disk.remove, part)
        if wait_ms is None:
            self.policy.failed(now_ms)
        else:
            self.policy.failed(now_ms, wait_ms)
        self._answer(None, error=why)

    def _answer(self, snapshot_id: OffsetAndEpoch | None, size_bytes: int = 0, error: str = "") -> None:
        """Answer the request that the snapshot was made for, if there is one."""
        asked = self._answering or self._asked
        self._answering = self._asked = None
        if asked is None:
            return
        path = ""
        if snapshot_id is not None:
            path = checkpoint_path(self.storage.log.directory, snapshot_id)
            size_bytes = size_bytes or self.runner.node.core.log.snapshots.get(snapshot_id, 0)
        elif not error:
            error = "nothing is committed yet"
        given = SnapshotAnswer(asked=asked, path=path, size_bytes=size_bytes, error=error)
        self.runner.loop.run_in_executor(None, self._give, given)

    def _give(self, given: SnapshotAnswer) -> None:
        try:
            answer(self.storage.disk, self.storage.directory.path, given)
        except StorageError as error:
            self.log.error("whoever asked for a snapshot cannot be answered", error=str(error))

    # -- letting them go

    def clean(self, now_ms: int) -> None:
        """Delete what retention lets go of. Not while a writer runs, which reads it."""
        self._next_clean_ms = now_ms + CLEAN_EVERY_MS
        log, node = self.storage.log, self.runner.node
        sizes = node.core.log.snapshots
        kept = [
            KeptSnapshot(
                each, sizes.get(each, 0), self._timestamp_ms(each), self.storage.snapshot_reads.get(each)
            )
            for each in log.snapshots
        ]
        limit = min(node.core.log_start_limit, node.replay.next_offset)
        start = new_start(self.rules, kept, log.size_bytes_from, log.log_start, limit, now_ms)
        if start is None or not log.delete_before_snapshot(start):
            return
        for each in set(self._timestamps) - set(log.snapshots):
            del self._timestamps[each]
        self.runner.step(LogStartMoved(start.offset))
        self.runner.tidy()
        self.log.info("the log starts at a snapshot", snapshot=name_of(start), snapshots=len(log.snapshots))

    def _timestamp_ms(self, snapshot_id: OffsetAndEpoch) -> int:
        found = self._timestamps.get(snapshot_id)
        if found is None:
            path = checkpoint_path(self.storage.log.directory, snapshot_id)
            try:
                reader = CheckpointReader(self.storage.disk, path)
            except (CorruptStorage, FileNotFoundError):
                return 0  # of no use to anybody
            reader.close()
            found = self._timestamps[snapshot_id] = reader.header.last_contained_log_timestamp_ms
        return found

    # -- damage

    def _scrub(self) -> None:
        if self._scrubber is not None:
            self.log.error("checking the files takes longer than the time between two checks")
            return
        arguments = [self.storage.log.directory, str(self.storage.log.synced_end)]
        self._scrubber = self._child(SCRUBBER, arguments, self._scrubbed)

    def _scrubbed(self, ended: ChildEnded) -> None:
        self._scrubber = None
        if ended.exit_code != 0:
            self.log.error("the files could not be checked", error=ended.err)
        rows = [msgspec.json.decode(line) for line in ended.out.splitlines()]
        for row in rows:
            text = f"{row['path']}, byte {row['position']}: {row['reason']}"
            damaged = parse_checkpoint_name(os.path.basename(row["path"]))
            if damaged is None or not self._set_aside(damaged, text):
                self.log.error(
                    "damage on disk",
                    damage=text,
                    offset=row["offset"],
                    remedy="with other voters up, stop this node, move "
                    + (
                        "the file aside and start it again: then a snapshot is fetched from the leader"
                        if damaged is not None
                        else "its directory aside, format it anew and let it catch up from the leader"
                    ),
                )
        self.damaged_files += len(rows)
        self.log.info("files checked", damaged=len(rows))

    def _set_aside(self, snapshot_id: OffsetAndEpoch, text: str) -> bool:
        """Do without a damaged checkpoint; False where the log cannot do without it."""
        log = self.storage.log
        if snapshot_id not in log.snapshots:
            return True
        others = [each for each in log.snapshots if each != snapshot_id and each.offset > 0]
        if log.log_start > 0 and not others:
            return False
        aside = set_aside(self.storage.disk, log.directory, snapshot_id)
        log.forget_snapshot(snapshot_id)
        self.runner.step(SnapshotsDeleted((snapshot_id,)))
        self.log.error("a damaged checkpoint was set aside", damage=text, now_named=aside)
        if log.log_start == snapshot_id.offset and log.delete_before_snapshot(others[0]):
            self.runner.step(LogStartMoved(others[0].offset))
        return True

    def _child(self, module: str, arguments: list[str], ended: Any) -> Child:
        return Child(module, arguments, self.runner.loop.call_soon_threadsafe, ended)

    def __repr__(self) -> str:
        return f"<SnapshotKeeper {self.policy!r}, {self._writer!r}>"
