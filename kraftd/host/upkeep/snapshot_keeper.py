"""Manages a replica's snapshots: makes them when due, deletes old ones, checks all files.

Long work runs in child processes, one of each kind at a time. This module decides when to start one, and
handles the result. It polls once a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kraftd.ground.ticks import next_tick_ms
from kraftd.histogram import Histogram
from kraftd.host.snapshots.checkpointing import (
    DAMAGED,
    MADE,
    TRANSACTION,
    UNCHANGED,
    CheckpointMade,
    CheckpointOrder,
)
from kraftd.host.upkeep.retention import KeptSnapshot, RetentionRules, new_start
from kraftd.host.upkeep.snapshot_policy import AFTER_FAILURE_MS, AFTER_TRANSACTION_MS, SnapshotPolicy
from kraftd.host.upkeep.snapshot_request import (
    Leftovers,
    SnapshotAnswer,
    WaitingRequests,
    answer,
    name_of,
)
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    checkpoint_path,
    parse_checkpoint_name,
    part_name,
    set_aside,
)
from kraftd.named_tuple import NamedTuple
from kraftd.raft.events import LogStartMoved, SnapshotsDeleted, SnapshotTaken
from kraftd.requests.repeats import Repeats
from kraftd.types import OffsetAndEpoch

if TYPE_CHECKING:
    from kraftd.host.executors.core_executor import EffectExecutor
    from kraftd.host.ports import Child, FilesChecked, Handle, Processes, ProcessFailed
    from kraftd.raft.core import RaftCore


POLL_MS = 1_000


class KeeperSettings(NamedTuple):
    """When snapshots are made (`SnapshotPolicy`), how long that may take, which are kept, and how often files
    are checked; 0 for never.
    """

    max_new_record_bytes: int
    max_interval_ms: int
    min_changed_ratio: float
    timeout_ms: int
    scrub_interval_ms: int
    rules: RetentionRules
    clean_interval_ms: int = 60_000  # as Kafka's cleaner
    retry_ms: int = AFTER_FAILURE_MS


class SnapshotKeeper:
    """Manages the snapshots of one replica. `stop` ends its child processes.

    replayed_to() is the offset up to which the image holds the log; step gets events for the core.
    """

    def __init__(
        self,
        executor: EffectExecutor,
        core: RaftCore,
        replayed_to: Callable[[], int],
        processes: Processes,
        settings: KeeperSettings,
        step: Callable[[Any], None],
    ) -> None:
        self.storage = executor.storage
        self.log = executor.log
        self.settings = settings
        self._executor = executor
        self._core = core
        self._replayed_to = replayed_to
        self._processes = processes
        self._step = step
        self._timer = executor.ports.timer
        now_ms = self._timer.now_ms()
        self.policy = SnapshotPolicy(settings.max_new_record_bytes, settings.max_interval_ms, now_ms)
        self._next_scrub_ms = now_ms + settings.scrub_interval_ms
        self._next_clean_ms = now_ms + settings.clean_interval_ms
        self._alarm: Handle | None = None
        self._writer: Child | None = None
        self._scrubber: Child | None = None
        self._order: CheckpointOrder | None = None
        self._started_ms = 0
        self._overdue = False  # the writer was ordered to end
        self._leftovers = Leftovers()
        self._waiting = WaitingRequests(self.storage.disk, self.storage.log.directory)
        self._repeats = Repeats()
        self._requested: list[str] = []  # the requests that wait for the next snapshot
        self._answering: list[str] = []  # the requests that the one under way answers
        self._timestamps: dict[OffsetAndEpoch, int] = {}
        # For metrics: the durations of those made, in nanoseconds; the size and time of the latest (before
        # the first, the time of the start); the number of failures; the number of damaged files.
        self.made = Histogram()
        self.made_bytes = 0
        self.made_ms = now_ms
        self.failures = 0
        self.damaged_files = 0

    def start(self, first_poll_ms: int | None = None) -> None:
        """Poll from then on."""
        at_ms = next_tick_ms(self._timer.now_ms(), POLL_MS, first_poll_ms)
        self._alarm = self._timer.call_at(at_ms, self._poll_again)

    def stop(self) -> None:
        """Stop polls; end child processes, and remove an unfinished file."""
        if self._alarm is not None:
            self._alarm.cancel()
        for child in (self._writer, self._scrubber):
            if child is not None:
                child.kill()
        if self._writer is not None and self._order is not None:
            name = part_name(self._order.snapshot_id, download=False)
            self.storage.disk.remove(f"{self._order.directory}/{name}")

    def _poll_again(self) -> None:
        self.start()
        try:
            self.poll()
        except StorageError as error:
            self._poll_failed(error)

    def _poll_failed(self, error: Exception) -> None:
        count = self._repeats.due(type(error).__name__, self._timer.now_ms() * 1_000_000)
        if count:
            self.log.error("the periodic work on snapshots failed", error=str(error), seen=count)

    def _guarded(self, ended: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap the handler of a child process's end: an error in it ends this process, as in a step."""

        def follow(result: Any) -> None:
            try:
                ended(result)
            except Exception as error:
                self._executor.fail(error)

        return follow

    @property
    def is_making(self) -> bool:
        return self._writer is not None

    def poll(self) -> None:
        """Start what is due."""
        now_ms = self._timer.now_ms()
        self._look_for_requests()
        if self._writer is None:
            # Deletion comes first: otherwise, if a snapshot is always due, nothing would ever be deleted.
            if now_ms >= self._next_clean_ms:
                self.clean(now_ms)
                self._remove_leftovers(now_ms)
            self._make_if_due(now_ms)
        elif not self._overdue and now_ms - self._started_ms >= self.settings.timeout_ms:
            self._overdue = True
            self.log.error("the process that makes a snapshot hangs: it is killed", pid=self._writer.pid)
            self._writer.abandon()
        if self.settings.scrub_interval_ms and now_ms >= self._next_scrub_ms:
            self._next_scrub_ms = now_ms + self.settings.scrub_interval_ms
            self.scrub()

    def _look_for_requests(self) -> None:
        """Take the requests that wait."""
        try:
            self._requested += self._waiting.take()
        except StorageError as error:
            self._poll_failed(error)

    # -- making them

    @property
    def _bytes_since(self) -> int:
        log = self.storage.log
        latest = log.latest_snapshot
        return log.bytes_from(latest.offset if latest is not None else log.log_start)

    def _make_if_due(self, now_ms: int) -> None:
        bytes_since = self._bytes_since
        reason = "it was asked for" if self._requested else self.policy.reason(bytes_since, now_ms)
        if reason is None:
            return
        latest = self.storage.log.latest_snapshot
        if self._core.high_watermark <= (latest.offset if latest is not None else 0):
            self._answer_waiting(latest if latest is not None and latest.offset > 0 else None)
            return
        by_bytes = not self._requested and self.policy.is_by_bytes(bytes_since)
        order = self.order(self.settings.min_changed_ratio if by_bytes else 0.0)
        if order is None:
            return  # still loading: retried at a later poll
        self._order = order
        self._started_ms, self._overdue = now_ms, False
        self._answering, self._requested = self._requested, []
        self.log.info("making a snapshot", snapshot=name_of(order.snapshot_id), because=reason)
        self._writer = self._processes.make_checkpoint(order, self._guarded(self._written))

    def order(self, min_changed_ratio: float = 0.0) -> CheckpointOrder | None:
        """The order for a checkpoint of the committed records; None until they are all on disk and in the
        image.
        """
        log = self.storage.log
        end_offset = self._core.high_watermark
        epoch = log.epochs.epoch_of(end_offset - 1)
        if epoch is None or self._replayed_to() < end_offset or log.synced_end < end_offset:
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

    def _written(self, made: CheckpointMade | ProcessFailed) -> None:
        order, self._order, self._writer = self._order, None, None
        assert order is not None
        now_ms = self._timer.now_ms()
        if not isinstance(made, CheckpointMade):
            why = made.text
            if self._overdue:
                why = (
                    f"it was not finished after {self.settings.timeout_ms} ms "
                    "(kraftd.metadata.snapshot.timeout.ms)"
                )
            self._failed(order, why, now_ms)
        elif made.outcome == MADE:
            try:
                self.register(order, made, now_ms)
            except (StorageError, FileNotFoundError) as error:
                self._failed(order, str(error), now_ms)
            self._next_clean_ms = now_ms  # at the next poll
        elif made.outcome == TRANSACTION:
            self.policy.failed(now_ms, AFTER_TRANSACTION_MS)
            self._requested, self._answering = self._answering + self._requested, []
        elif made.outcome == UNCHANGED:
            self.policy.put_off(self._bytes_since)
            ratio = round(made.changed_ratio, 4)
            self.log.info("no snapshot: too few records have changed", changed_ratio=ratio)
        elif made.outcome == DAMAGED:
            damaged = parse_checkpoint_name(made.path.rpartition("/")[2])
            healed = damaged is not None and self._set_aside(damaged, made.text)
            self._failed(order, made.text, now_ms, wait_ms=0 if healed else None)

    def register(self, order: CheckpointOrder, made: CheckpointMade, now_ms: int) -> None:
        """Register a new checkpoint, if it was ordered and the log has not been replaced meanwhile.

        Raises CorruptStorage, FileNotFoundError.
        """
        log, snapshot_id = self.storage.log, order.snapshot_id
        path = checkpoint_path(log.directory, snapshot_id)
        if snapshot_id.offset < log.log_start:
            self.storage.disk.remove(path)
            self.log.info(
                "a snapshot was finished too late: the log begins after its end",
                snapshot=name_of(snapshot_id),
            )
            self._answer(log.latest_snapshot)
            return
        reader = CheckpointReader(self.storage.disk, path)
        reader.close()
        expected = self._core.kraft_version_at(snapshot_id.offset - 1)
        if reader.size_bytes != made.size_bytes or reader.header.kraft_version != expected:
            found = (
                f"{reader.size_bytes} bytes of kraft.version {reader.header.kraft_version}, "
                f"not {made.size_bytes} of {expected}"
            )
            self.log.error(
                "a snapshot is not the one that was requested", snapshot=name_of(snapshot_id), error=found
            )
            raise CorruptStorage(
                path, 0, snapshot_id.offset, found, "Remove the file; another is made in a while"
            )
        log.add_snapshot(snapshot_id)
        self._step(SnapshotTaken(snapshot_id, made.size_bytes))
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
        # A killed writer could not remove its file.
        part = f"{order.directory}/{part_name(order.snapshot_id, download=False)}"
        self._executor.ports.work_threads.run(
            lambda: self.storage.disk.remove(part),
            _nothing,
            lambda error: self.log.warning("an unfinished snapshot could not be removed", error=str(error)),
        )
        self.policy.failed(now_ms, self.settings.retry_ms if wait_ms is None else wait_ms)
        self._answer(None, error=why)

    # -- requests for one

    def _answer(self, snapshot_id: OffsetAndEpoch | None, size_bytes: int = 0, error: str = "") -> None:
        """Answer the requests for the snapshot under way."""
        names, self._answering = self._answering, []
        for name in names:
            self._answer_request(name, snapshot_id, size_bytes, error)

    def _answer_waiting(self, snapshot_id: OffsetAndEpoch | None) -> None:
        """Answer the waiting requests with the newest snapshot: there are no records for another."""
        names, self._requested = self._requested, []
        for name in names:
            self._answer_request(name, snapshot_id, 0, "")

    def _answer_request(
        self, name: str, snapshot_id: OffsetAndEpoch | None, size_bytes: int, error: str
    ) -> None:
        path = ""
        if snapshot_id is not None:
            path = checkpoint_path(self.storage.log.directory, snapshot_id)
            size_bytes = size_bytes or self._core.log.snapshots.get(snapshot_id, 0)
        elif not error:
            error = "nothing is committed yet"
        snapshot_answer = SnapshotAnswer(request=name, path=path, size_bytes=size_bytes, error=error)
        self._executor.ports.work_threads.run(
            lambda: answer(self.storage.disk, self.storage.log.directory, snapshot_answer),
            _nothing,
            lambda error: self.log.error("a request for a snapshot cannot be answered", error=str(error)),
        )

    def _remove_leftovers(self, now_ms: int) -> None:
        try:
            self._leftovers.remove_old(self.storage.disk, self.storage.log.directory, now_ms)
        except StorageError as error:
            self.log.warning("the answer of a command that has ended cannot be removed", error=str(error))

    # -- deleting them

    def clean(self, now_ms: int) -> None:
        """Delete what retention allows, but not while a writer runs, because it reads the files."""
        self._next_clean_ms = now_ms + self.settings.clean_interval_ms
        log, core = self.storage.log, self._core
        sizes, reads = core.log.snapshots, self.storage.snapshot_reads
        kept = [
            KeptSnapshot(each, sizes.get(each, 0), self._timestamp_ms(each), reads.get(each))
            for each in log.snapshots
        ]
        limit = min(core.log_start_limit, self._replayed_to())
        live_end = core.live_replicas_end
        wall_ms = now_ms + self._timer.wall_ahead_ms()
        start = new_start(
            self.settings.rules, kept, log.size_bytes_from, log.log_start, limit, now_ms, wall_ms, live_end
        )
        if start is not None:
            self.start_log_at(start)

    def start_log_at(self, start: OffsetAndEpoch) -> bool:
        """Let the log start at a snapshot; returns False if it already does."""
        log = self.storage.log
        if not log.delete_before_snapshot(start):
            return False
        for each in set(self._timestamps) - set(log.snapshots):
            del self._timestamps[each]
        self._step(LogStartMoved(start.offset))
        self._executor.tidy()
        self.log.info("the log starts at a snapshot", snapshot=name_of(start), snapshots=len(log.snapshots))
        return True

    def _timestamp_ms(self, snapshot_id: OffsetAndEpoch) -> int:
        found = self._timestamps.get(snapshot_id)
        if found is None:
            path = checkpoint_path(self.storage.log.directory, snapshot_id)
            try:
                reader = CheckpointReader(self.storage.disk, path)
            except (CorruptStorage, FileNotFoundError):
                return 0  # of no use to any replica
            reader.close()
            found = self._timestamps[snapshot_id] = reader.header.last_contained_log_timestamp_ms
        return found

    # -- damage

    def scrub(self) -> None:
        """Check all files now, unless a check is under way."""
        if self._scrubber is not None:
            self.log.error("checking the files takes longer than the time between two checks")
            return
        log = self.storage.log
        self._scrubber = self._processes.check_files(
            log.directory, log.synced_end, self._guarded(self._scrubbed)
        )

    def _scrubbed(self, checked: FilesChecked) -> None:
        self._scrubber = None
        if checked.error:
            self.log.error("the files could not be checked", error=checked.error)
        for row in checked.rows:
            text = f"{row['path']}, byte {row['position']}: {row['reason']}"
            damaged = parse_checkpoint_name(row["path"].rpartition("/")[2])
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
        damaged_count = len({row["path"] for row in checked.rows})
        self.damaged_files += damaged_count
        self.log.info("files checked", damaged=damaged_count)

    def _set_aside(self, snapshot_id: OffsetAndEpoch, text: str) -> bool:
        """Set a damaged checkpoint aside; returns False if the log needs it."""
        log = self.storage.log
        if snapshot_id not in log.snapshots:
            return True
        others = [each for each in log.snapshots if each != snapshot_id and each.offset > 0]
        if log.log_start > 0 and not others:
            return False
        aside = set_aside(self.storage.disk, log.directory, snapshot_id)
        log.forget_snapshot(snapshot_id)
        self._step(SnapshotsDeleted((snapshot_id,)))
        self.log.error("a damaged checkpoint was set aside", damage=text, now_named=aside)
        if log.log_start == snapshot_id.offset:
            self.start_log_at(others[0])
        return True

    def __repr__(self) -> str:
        return f"<SnapshotKeeper {self.policy!r}, {'making one' if self.is_making else 'idle'}>"


def _nothing(_: Any) -> None:
    """Do nothing: no caller waits for it."""
