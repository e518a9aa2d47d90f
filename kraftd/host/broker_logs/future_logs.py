"""Copies the logs of partitions to other directories of their broker (KIP-113): future logs, which then take
the place of the present ones.

A thread reads, or the event loop where nothing has to wait; the loop appends. `future_making` makes the logs.
The rules are in `kraftd.partition.future`. A future log is durable as far as the present one before it takes
its place, and the controller knows by then (`kraftd.broker_node.directories.log_moves`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.broker_node.effects import CancelMove, OpenLog, ReplaceLog
from kraftd.broker_node.events import FutureCaughtUp, FutureLost, LogReplaced, MoveBegun
from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.windowed_rate import WindowedRate
from kraftd.host.broker_logs.appending import append_batches
from kraftd.host.broker_logs.future_making import FutureMaking
from kraftd.host.broker_logs.log_cleaning import LogCleaning
from kraftd.host.broker_logs.producer_reload import ProducerReload
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import Log, Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.flushing import FlushJob
from kraftd.log.data.reading import ColdRead, run_cold
from kraftd.log.errors import DiskFull, StorageError, StorageFailure
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.log_dirs.log_opening import LogOpening, LogReopening
from kraftd.partition.effects import AppendBatches, LogStartMoved, StartLogAt, TruncateLog
from kraftd.partition.future import ANY_EPOCH, Read, future_of, next_copy
from kraftd.partition.partition import Partition
from kraftd.partition.replication import fetched_from_leader, replicated_up_to
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.primitives import Buffer

COPY_BYTES = 512 << 10
HOT_BYTES = 128 << 10  # so much may be copied without a thread, if it is in memory or the page cache
THROTTLED_MS = 100  # after which what was held back by the throttle is looked at again
Failed = Callable[[TopicPartition, DataLog, StorageError], None]


class Move:
    """One log that is copied. `future` is the replica whose log is `log`; None until its producers are
    loaded. `is_busy`: a thread works for it. `replaces`: it may take the place of the present log.
    `lacks_room`: it met a full disk, and has not copied anything since.
    """

    def __init__(self, key: TopicPartition, log: DataLog) -> None:
        self.key = key
        self.log = log
        self.future: Partition | None = None
        self.is_busy = False
        self.was_flushed = False
        self.is_reported = False
        self.replaces = False
        self.has_failed = False
        self.lacks_room = False

    def __repr__(self) -> str:
        return f"<Move of {self.key[0]}-{self.key[1]} to {self.log.parent}, at {self.log.log_end}>"


class FutureLogs:
    """`hosted` gives a partition of the node, None if there is none; `limit` is
    replica.alter.log.dirs.io.max.bytes.per.second, `rate` what was copied. `step` steps the node.
    """

    def __init__(
        self,
        directories: LogDirectories,
        loader: LogLoader,
        cleaning: LogCleaning,
        ports: Ports,
        step: Callable[[Event], None],
        hosted: Callable[[TopicPartition], Hosted | None],
        new_producers: Callable[[TopicPartition], ReplayedProducers],
        new_unique_text: Callable[[], str],
        failed: Failed,
        rate: WindowedRate,
        limit: Callable[[], int | None],
    ) -> None:
        self.moves: dict[TopicPartition, Move] = {}
        self.making = FutureMaking(directories, ports, step, new_unique_text, self._copied, self._drop)
        self._directories = directories
        self._loader = loader
        self._cleaning = cleaning
        self._ports = ports
        self._lines: Log = ports.log
        self._step = step
        self._hosted = hosted
        self._new_producers = new_producers
        self._unique_text = new_unique_text
        self._failed_log = failed
        self._rate = rate
        self._limit = limit
        self._reopening: dict[TopicPartition, bool] = {}  # by a thread; true: it was cancelled meanwhile

    def __repr__(self) -> str:
        return f"<FutureLogs {list(self.moves.values())}>"

    # -- what the node wants

    def _copied(self, key: TopicPartition, future: DataLog) -> MoveBegun:
        """A future log is there: it is to be filled."""
        present, move = self._directories.logs[key], self.moves.get(key)
        if move is None or move.has_failed:
            move = self._add(key, future)
            self._lines.info(
                "a log is copied", partition=f"{key[0]}-{key[1]}", of=present.parent, to=future.parent
            )
        self._ports.timer.call_soon(self._go_on, move)
        return MoveBegun(*key, future, self._directories.id_of(future))

    def _add(self, key: TopicPartition, future: DataLog) -> Move:
        self._cleaning.pause(key)
        move = self.moves[key] = Move(key, future)
        return move

    def cancel(self, effect: CancelMove) -> None:
        """Delete a future log."""
        self.forget((effect.topic, effect.partition))

    def forget(self, key: TopicPartition) -> None:
        """Delete the future log of a partition, if there is one, or as soon as it is made."""
        self.making.cancel(key)
        self._drop(key)

    def _drop(self, key: TopicPartition) -> None:
        self.moves.pop(key, None)
        if key in self._reopening:
            self._reopening[key] = True
            return
        future = self._directories.futures.get(key)
        remove = self._directories.delete_damaged if future is None else self._directories.delete
        try:
            remove(*key, self._unique_text(), self._ports.wall_ms(), future=True)
        except StorageError as error:
            if future is None:
                self._lines.error("a log is not removed", partition=f"{key[0]}-{key[1]}", error=str(error))
            else:
                self._failed_log(key, future, error)

    def replace(self, effect: ReplaceLog) -> None:
        """Let a future log take the place of the present one once it has all of it."""
        move = self.moves.get((effect.topic, effect.partition))
        if move is not None:
            move.replaces = True
            self._ports.timer.call_soon(self._go_on, move)

    def recover(self, effect: OpenLog) -> None:
        """Before a log is opened: if the process ended while a future log took its place, go on with that.
        Raises the error for which that is closed.
        """
        key, directories = (effect.topic, effect.partition), self._directories
        closed = directories.closed_futures.get(key)
        if key in directories.logs or key in directories.damaged:
            return
        if closed is not None and closed.topic_id == effect.topic_id:
            at = directories.directories[closed.parent]
            if at.directory_id == effect.directory_id:
                raise closed.error
        if key not in directories.futures:
            return
        try:
            log = directories.recover_future(
                *key, effect.topic_id, effect.directory_id, self._unique_text(), self._ports.wall_ms()
            )
        except StorageError as error:
            self._failed_log(key, directories.futures[key], error)
            return
        if log is not None:
            if (producers := self._loader.producers_of_futures.pop(key, None)) is not None:
                self._loader.producers[key] = producers
            self._lines.warning(
                "a log had left its former directory, and is used in the other", directory=log.directory
            )

    # -- copying

    @property
    def has_any(self) -> bool:
        """Return whether a log moves, or was found half moved at the start."""
        return bool(self.moves or self._directories.futures or self._directories.closed_futures)

    def look(self) -> None:
        """Go on with what waits, also for room on a disk. Take up future logs that were found at a start, and
        report lost ones.
        """
        for key, closed in list(self._directories.closed_futures.items()):
            if closed.opening is not None and key not in self._reopening:
                self._reopen(key, closed.opening)
        for key, future in list(self._directories.futures.items()):
            if key not in self.moves:
                self._take_up(key, future)
        for move in list(self.moves.values()):
            if self._directories.futures.get(move.key) is not move.log:
                del self.moves[move.key]
                self._ports.timer.call_soon(self._step, FutureLost(*move.key))
            elif not move.has_failed or move.lacks_room:
                if move.has_failed and not move.is_busy:
                    move.has_failed, move.future = False, None  # its producers are ahead of it
                move.is_reported = False
                self._go_on(move)

    def _reopen(self, key: TopicPartition, opening: LogOpening) -> None:
        """Open a future log if its disk has room now."""
        making = self._directories.reopen_future(opening, self._ports.wall_ms())
        self._reopening[key] = False
        self._ports.work_threads.run(making.run, partial(self._reopened, key, making), self._ports.failed)

    def _reopened(self, key: TopicPartition, making: LogReopening, _result: None) -> None:
        if self.making.is_closed:
            return  # the directories have accounted for it
        name, is_cancelled = f"{key[0]}-{key[1]}", self._reopening.pop(key)
        try:
            self._directories.end_create(making, lambda path, error: None)
        except StorageError as error:
            if not isinstance(error, DiskFull):
                self._lines.error("a log is not copied on", partition=name, to=making.path, error=str(error))
        else:
            for note in making.notes:
                self._lines.warning("recovered", note=note)
            if making.producers is not None:
                self._loader.producers_of_futures[key] = making.producers
        if is_cancelled:
            self._drop(key)

    def _take_up(self, key: TopicPartition, future: DataLog) -> None:
        hosted, log = self._hosted(key), self._directories.logs.get(key)
        if hosted is None or hosted.log is None or log is None:
            return
        if future.topic_id not in (None, log.topic_id) or future.parent == log.parent:
            self.forget(key)  # of a former topic
            return
        if future.topic_id is None and log.topic_id is not None:
            future.assign_topic_id(log.topic_id)
        move, id = self._add(key, future), self._directories.id_of(future)
        producers = self._loader.producers_of_futures.pop(key, None)
        states = producers.states if isinstance(producers, ReplayedProducers) else None
        assert hosted.partition is not None
        bounds = future.log_start, future.log_end
        move.future = future_of(hosted.partition, future.epochs, *bounds, states)
        self._lines.info("a log is copied on", partition=f"{key[0]}-{key[1]}", to=future.parent)
        self._ports.timer.call_soon(self._step, MoveBegun(*key, future, id))

    def _go_on(self, move: Move) -> None:
        """Copy until a thread is needed, or nothing is left."""
        while self.moves.get(move.key) is move and not move.is_busy and not move.has_failed:
            hosted, log = self._hosted(move.key), self._directories.logs.get(move.key)
            if hosted is None or hosted.partition is None or hosted.is_truncating or log is None:
                return
            if self._directories.futures.get(move.key) is not move.log:
                return  # its directory failed: the next look says so
            if move.future is None:
                self._start(move, hosted.partition)
            elif not self._copy(move, move.future, hosted.partition, log):
                return

    def _start(self, move: Move, current: Partition) -> None:
        bounds = move.log.log_start, move.log.log_end
        move.future = future_of(current, move.log.epochs, *bounds)
        if move.log.log_end > move.log.log_start:
            self._reload(move)

    def _copy(self, move: Move, future: Partition, current: Partition, log: DataLog) -> bool:
        """Do the next thing of a move; return whether more is to be done at once."""
        found = next_copy(current, future)
        if isinstance(found, ErrorCode):
            return False
        if isinstance(found, list):
            self._perform(move, found)
            return True
        if found.offset >= found.end_offset:
            marks = current.high_watermark, current.log_start_offset
            self._perform(
                move, replicated_up_to(future, future.log_end_offset, *marks, self._ports.wall_ms())
            )
            return self._caught_up(move, log)
        limit, now_ms = self._limit(), self._ports.wall_ms()
        if limit is not None and self._rate.is_over(limit, now_ms):
            self._ports.timer.call_at(self._ports.timer.now_ms() + THROTTLED_MS, self._go_on, move)
            return False
        try:
            if log.bytes_between(found.offset, found.end_offset) <= HOT_BYTES:
                data = log.read(found.offset, HOT_BYTES, found.end_offset, cached_only=True)
                if data is not None:
                    self._append(move, future, data)
                    return not move.has_failed
        except StorageError as error:
            self._fail(move, error)
            return False
        self._read_cold(move, future, log, found)
        return False

    def _read_cold(self, move: Move, future: Partition, log: DataLog, wanted: Read) -> None:
        read: ColdRead = log.cold_read(wanted.offset, COPY_BYTES, wanted.end_offset)

        def done(data: Buffer) -> None:
            move.is_busy = False
            is_current = self.moves.get(move.key) is move and log.cut_count == read.cut_count
            if is_current and future.log_end_offset == wanted.offset:
                self._append(move, future, data)
            self._go_on(move)

        def failed(error: Exception) -> None:
            move.is_busy = False
            if log.cut_count == read.cut_count and self.moves.get(move.key) is move:
                self._fail(move, error)
            else:
                self._go_on(move)

        move.is_busy = True
        disk = self._directories.resources.disk
        self._ports.work_threads.run(partial(run_cold, disk, read), done, failed)

    def _append(self, move: Move, future: Partition, data: Buffer) -> None:
        effects = fetched_from_leader(future, data, ANY_EPOCH)
        if isinstance(effects, ErrorCode) or not effects:
            why = effects.name if isinstance(effects, ErrorCode) else "there are no records to read"
            self._fail(move, StorageFailure(f"{move.log!r} cannot follow: {why}"))
            return
        self._rate.record(len(data), self._ports.wall_ms())
        self._perform(move, effects)
        if not move.has_failed:
            move.lacks_room = False
            future.appended(future.next_offset, self._ports.wall_ms())

    def _perform(self, move: Move, effects: list[Effect]) -> None:
        log, now_ms = move.log, self._ports.wall_ms()
        try:
            for one in effects:
                if isinstance(one, AppendBatches):
                    self._write(move, one)
                elif isinstance(one, StartLogAt):
                    log.truncate_fully_and_start_at(one.offset, now_ms, one.log_start_offset)
                elif isinstance(one, LogStartMoved):
                    log.increment_log_start(one.log_start_offset)
                elif isinstance(one, TruncateLog):
                    log.truncate_to(one.end_offset, now_ms)
                    self._reload(move)
        except (StorageError, ValueError) as error:
            self._fail(move, error)

    def _write(self, move: Move, append: AppendBatches) -> None:
        future = move.future
        assert future is not None
        append_batches(
            move.log, append, self._ports.wall_ms(), lambda: future.snapshot_before(append.base_offset)
        )

    def _reload(self, move: Move) -> None:
        """Load the producers of a future log that was truncated."""

        def done(producers: ReplayedProducers) -> None:
            move.is_busy = False
            if move.future is not None:
                move.future.truncated(move.log.log_start, move.log.log_end, producers.states)
            self._go_on(move)

        def failed(error: Exception) -> None:
            move.is_busy = False
            self._fail(move, error)

        move.is_busy = True
        disk, threads = self._directories.resources.disk, self._ports.work_threads
        producers = self._new_producers(move.key)
        ProducerReload(move.log, producers, disk, run_cold, threads, done, failed).start()

    def _fail(self, move: Move, error: Exception) -> None:
        """Give a move up until it is asked for again, or the full disk has room. A directory that failed goes
        offline.
        """
        lacked_room, move.lacks_room = move.lacks_room, isinstance(error, DiskFull)
        move.has_failed = True
        name = f"{move.key[0]}-{move.key[1]}"
        if not (lacked_room and move.lacks_room):
            self._lines.error("a log is not copied on", partition=name, to=move.log.parent, error=str(error))
        if move.log.failure is not None:
            self._failed_log(move.key, move.log, move.log.failure)

    # -- the end of a move

    def _caught_up(self, move: Move, log: DataLog) -> bool:
        """Flush, report, or replace; return whether there is more to do at once."""
        if move.has_failed or move.log.is_flushing:  # then the next look goes on
            return False
        durable_to = log.recovery_point if move.was_flushed else log.log_end
        if move.log.recovery_point < durable_to:
            self._flush(move)
        elif move.replaces:
            self._replace(move, log)
        elif not move.is_reported:
            move.is_reported = True
            self._ports.timer.call_soon(self._step, FutureCaughtUp(*move.key))
        return False

    def _flush(self, move: Move) -> None:
        try:
            job = move.log.begin_flush()
        except StorageError as error:
            self._fail(move, error)
            return
        if job is None:
            return
        move.is_busy = True
        flushed, failed = partial(self._flushed, move, job), partial(self._not_flushed, move, job)
        self._ports.work_threads.run(job.run, flushed, failed)

    def _flushed(self, move: Move, job: FlushJob, _result: None) -> None:
        move.is_busy, move.was_flushed = False, True
        move.log.end_flush(job, self._ports.wall_ms())
        self._go_on(move)

    def _not_flushed(self, move: Move, job: FlushJob, error: Exception) -> None:
        move.is_busy = False
        failure = error if isinstance(error, StorageError) else StorageFailure(f"{move.log!r}: {error!r}")
        move.log.end_flush(job, self._ports.wall_ms(), failure)
        if self.moves.get(move.key) is move:
            self._fail(move, failure)

    def _replace(self, move: Move, before: DataLog) -> None:
        key, parents = move.key, (before.parent, move.log.parent)
        latest = move.log.epochs.latest
        try:
            for epoch, start in before.epochs.entries:  # an epoch without records is not copied with them
                if latest is None or epoch > latest:
                    move.log.assign_epoch(epoch, start)
            log = self._directories.replace_with_future(*key, self._unique_text(), self._ports.wall_ms())
        except StorageError as error:
            self._fail(move, error)
            return
        del self.moves[key]
        self._cleaning.moved(key, parents)
        for path in parents:
            for job in self._directories.checkpoints_of(path):
                self._ports.work_threads.run(job.run, lambda _: None, self._not_written)
            sync = partial(self._directories.resources.disk.sync_directory, path)
            self._ports.work_threads.run(sync, lambda _: None, self._not_written)
        self._lines.info("a log was moved", partition=f"{key[0]}-{key[1]}", of=parents[0], to=parents[1])
        self._ports.timer.call_soon(self._step, LogReplaced(*key, log))

    def _not_written(self, error: Exception) -> None:
        self._lines.error("a checkpoint was not written", error=str(error))
