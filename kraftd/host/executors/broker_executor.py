"""Performs the effects of a broker node, beside those of any node that answers from an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from kraftd.broker_node.effects import (
    AppendToLog,
    BrokerFailed,
    CancelMove,
    CordonDirectories,
    DeleteLog,
    DescribeDirectories,
    FindOffsets,
    MoveLogs,
    OfPartition,
    OpenLog,
    ReadForShares,
    ReadPartition,
    ReplaceLog,
    SetCleaner,
    SetLog,
    SetLogAside,
)
from kraftd.broker_node.events import AppendsEnded
from kraftd.broker_node.node import BrokerNode
from kraftd.ground.event import Event
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.host.broker_logs.aborted import aborted_among
from kraftd.host.broker_logs.broker_logs import BrokerLogs, Schedules
from kraftd.host.broker_logs.future_logs import FutureLogs
from kraftd.host.broker_logs.log_cleaning import LogCleaning
from kraftd.host.broker_logs.partition_reads import PartitionReads
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.broker_logs.share_reads import ShareReads
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.answer_reads import UNREADABLE, read_records
from kraftd.host.executors.answering_executor import AnsweringExecutor, Around, at_once
from kraftd.host.executors.fetch_rounds import run_round
from kraftd.host.executors.offset_lookups import OffsetLookups
from kraftd.host.executors.paced_reads import PacedReads, Rest
from kraftd.host.executors.repeating import Repeating
from kraftd.host.ports import AnswerWire, Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.reading import ColdRead, run_cold
from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log.partition_log import OffsetOutOfRange, PartitionLog
from kraftd.log_dirs.cleaner import CleanerSettings
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.jobs import RunAll, in_turn
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.messages.fetch_response import AbortedTransaction
from kraftd.partition.effects import StartLogAt, TruncateLog
from kraftd.redaction.batches import redacted_batches
from kraftd.requests.effects import AnswerRecords, RecordsOf
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.producer_snapshot import SnapshotEntry

READ_US = 15  # of a partition's read, for the pace
READ_BYTES_A_US = 1_000  # a cached read copies them
COUNTED_AT_ONCE = 1_000  # partitions of an answer
_DONE = object()
RESTING_MS = 5_000  # between looks while no log waits: each wakeup costs an idle node
_CUTS = (TruncateLog, StartLogAt)

Framed = list[Buffer] | None


class NoControllerNotified(Exception):
    """No controller was notified in time of this broker, or of directories that it lost."""


class BrokerExecutor(AnsweringExecutor):
    """One broker node beside a replica, with its logs and the replica's log."""

    node: BrokerNode

    def __init__(
        self,
        node: BrokerNode,
        view: NodeView,
        metadata_log: PartitionLog,
        directories: LogDirectories,
        loader: LogLoader,
        schedules: Schedules,
        disk: Disk,
        ports: Ports,
        wire: AnswerWire,
        new_unique_text: Callable[[], str],
        around: Around = at_once,
        cleaner: CleanerSettings | None = None,
    ) -> None:
        super().__init__(node, view, ports, wire, around)
        self.logs = BrokerLogs(
            directories,
            loader.producers,
            ports,
            self.step,
            new_unique_text,
            self._snapshot_of,
            self._new_producers,
            self._mark_of,
        )
        self.cleaning = LogCleaning(
            directories,
            cleaner or CleanerSettings(),
            ports,
            self._last_stable_of,
            self._snapshot_of,
            self.logs.failed,
            self._look_for_logs_to_clean,
            self._expire_compacted,
        )
        self.futures = FutureLogs(
            directories,
            loader,
            self.cleaning,
            ports,
            self.step,
            lambda key: self.node.replicas.get(*key),
            self._new_producers,
            new_unique_text,
            self.logs.failed,
            node.replication_quotas.of_moves,
            node.replication_quotas.moves_limit,
        )
        self.logs.changes.recover = self.futures.recover
        self.reads = PacedReads(
            self._read, lambda reads: self.around(self.reads, reads), ports.timer.call_soon
        )
        self._metadata_log = metadata_log
        self._disk = disk
        self._ports = ports
        self._loader = loader
        self._repeating: dict[Callable[[], Iterator[None] | None], Repeating] = {}  # by its work
        self._schedules = schedules
        rest_ms = max(schedules.deletion_ms, RESTING_MS)
        self._waiting = Repeating(
            self.timer,
            self.around,
            schedules.deletion_ms,
            self._look_after_waiting,
            rest_ms,
            lambda: self._has_waiting,
        )
        self.performers |= self._of_logs(directories)

    def _of_logs(self, directories: LogDirectories) -> dict[type, Callable[..., None]]:
        lookups = OffsetLookups(
            directories, self._metadata_log, self._ports.timer, self.around, self.step, self.logs.failed
        )
        return {
            BrokerFailed: self._failed,
            OpenLog: self._after_appends(self.logs.changes.open),
            MoveLogs: self.futures.making.begin,
            CancelMove: self.futures.cancel,
            ReplaceLog: self._after_appends(self.futures.replace),
            DeleteLog: self._after_appends(self._delete_log),
            SetLogAside: self._after_appends(self.logs.changes.set_aside),
            SetLog: self.logs.set,
            AppendToLog: self.logs.appends.add,
            OfPartition: self._perform_on_log,
            FindOffsets: lookups.find,
            DescribeDirectories: self.logs.describe_directories,
            CordonDirectories: self.logs.cordon,
            SetCleaner: self._set_cleaner,
            ReadPartition: PartitionReads(directories, self._ports, self.step).read,
            ReadForShares: ShareReads(self.logs, self._disk, self._ports, self.step).read,
            AnswerRecords: self.reads.begin,
        }

    # -- driving

    def start(self) -> None:
        super().start()
        self.logs.load(self._loader)
        logs, schedules, cleaning = self.logs, self._schedules, self.cleaning
        if cleaning.cleaner.settings.log_cleaner_enable:
            cleaning.load()
        first_ms = schedules.log_initial_task_delay_ms
        for every_ms, work, after_ms in (
            (cleaning.cleaner.settings.log_cleaner_backoff_ms, cleaning.look, None),
            (schedules.log_flush_scheduler_interval_ms, logs.flush_by_time, first_ms),
            (schedules.log_flush_offset_checkpoint_interval_ms, logs.checkpoint, first_ms),
            (schedules.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks, None),
            (schedules.log_retention_check_interval_ms, logs.remove_expired, first_ms),
            (schedules.producer_id_expiration_check_interval_ms, self._expire_producers, None),
        ):
            self._repeating[work] = repeating = Repeating(self.timer, self.around, every_ms, work)
            repeating.plan(after_ms)
        self._repeating[self._look_after_waiting] = self._waiting
        self._waiting.plan()

    @property
    def _has_waiting(self) -> bool:
        """Return whether logs wait for their time, for room or to be copied."""
        return self.logs.has_waiting or self.futures.has_any

    def _look_after_waiting(self) -> Iterator[None]:
        """Go on with what waits."""
        self.logs.remove_due()
        self.futures.look()
        return self.logs.changes.open_waiting()

    def _step(self, event: Event) -> None:
        super()._step(event)
        self._end_appends()

    def _end_appends(self) -> None:
        """Report what was written, and what that leads to."""
        while (appended := self.logs.appends.take()) is not None:
            super()._step(appended)
        self.logs.flush_due()

    def follow(self, request_id: int, version: int, frame: memoryview) -> Message | bool:
        rounds = self.node.own_requests.rounds(request_id)
        rows = None if rounds is None else rounds.judge(version, frame)
        if rounds is None or rows is None:
            return False
        following = run_round(self, request_id, rounds, rows)
        if self.node.end_round():
            self.around(AppendsEnded(()), self._perform_rest)
        return following

    def _perform_rest(self) -> None:
        """Perform what follows from a round besides the next one."""
        self._perform(self.node.outbox.take())
        self._send_answers()
        self._end_appends()

    def look(self) -> None:
        super().look()
        if self._waiting.rests and self._has_waiting:
            self._waiting.wake()

    def connection_lost(self, connection_id: int) -> None:
        self.reads.forget(connection_id)
        super().connection_lost(connection_id)

    def close_files(self, run_all: RunAll = in_turn) -> None:
        """Stop the work besides requests, and close the logs as at a clean stop. Blocks."""
        for one in self._repeating.values():
            one.stop()
        self.cleaning.close()
        self.futures.making.close()
        self.logs.close(self.node.lifecycle.broker_epoch, run_all)

    def _failed(self, effect: BrokerFailed) -> None:
        self._ports.failed(NoControllerNotified(f"{effect.reason}: the lines before say why"))

    def _after_appends(self, change: Callable[[Any], object]) -> Callable[[Any], None]:
        """A change of which log a partition has: what was to be appended goes into the one before."""

        def changed(effect: Any) -> None:
            self.logs.appends.write()
            change(effect)

        return changed

    def _perform_on_log(self, effect: OfPartition) -> None:
        inner = effect.effect
        if isinstance(inner, _CUTS):
            end = inner.end_offset if isinstance(inner, TruncateLog) else 0
            self.cleaning.truncated((effect.topic, effect.partition), end)
        self.logs.perform(effect)

    def _set_cleaner(self, effect: SetCleaner) -> None:
        cleaner = self.cleaning.cleaner
        cleaner.settings = cleaner.settings.changed(effect.values)
        repeating = self._repeating.get(self.cleaning.look)
        if repeating is not None:  # else they begin with these settings
            repeating.every_ms = cleaner.settings.log_cleaner_backoff_ms
            repeating.hurry()

    def _look_for_logs_to_clean(self) -> None:
        self._repeating[self.cleaning.look].hurry()

    def _expire_compacted(self, key: TopicPartition) -> int:
        one = self.node.replicas.get(*key)
        if one is None or one.partition is None or one.log is None:
            return ROW_US
        return self.logs.remove_expired_of(key, one.partition.high_watermark, is_compacted=True)

    def _delete_log(self, effect: DeleteLog) -> None:
        self.futures.forget((effect.topic, effect.partition))
        self.cleaning.forget((effect.topic, effect.partition))
        self.logs.changes.delete(effect)

    # -- what the logs ask of the node

    def _last_stable_of(self, key: TopicPartition) -> int | None:
        hosted = self.node.replicas.get(*key)
        if hosted is None or hosted.partition is None:
            return None
        return hosted.partition.last_stable_offset

    def _snapshot_of(self, key: TopicPartition, offset: int) -> Iterable[SnapshotEntry]:
        hosted = self.node.replicas.get(*key)
        if hosted is None or hosted.partition is None:
            return []
        return hosted.partition.snapshot_before(offset)

    def _new_producers(self, key: TopicPartition) -> ReplayedProducers:
        hosted = self.node.replicas.get(*key)
        assert hosted is not None and hosted.partition is not None
        return ReplayedProducers(hosted.partition.config, self.node.wall_ms)

    def _checkpoint_high_watermarks(self) -> Iterator[None]:
        replicas = self.node.replicas
        if replicas.moved:
            moved, replicas.moved = replicas.moved, set()
            yield from self.logs.checkpoint_high_watermarks((one.topic, one.index) for one in moved)

    def _expire_producers(self) -> Slices[None]:
        """Forget producers that have been idle for producer.id.expiration.ms."""
        pace, now_ms, configs = Pace(), self.node.wall_ms, self.node.replicas.configs
        for one in list(self.node.replicas):
            if one.partition is not None:
                # Records alone let a partition look at its configs, and an idle one gets none.
                one.partition.config = configs.of(one.topic).partition
                if pace.spent(1 + one.partition.expire_producers(now_ms)):
                    yield

    def _mark_of(self, key: TopicPartition) -> int | None:
        """The high watermark of a partition with an open log; none if its topic was deleted in between."""
        one = self.node.replicas.get(*key)
        if one is None or one.partition is None or one.log is None:
            return None
        return one.partition.high_watermark

    # -- records for answers

    def _read(self, effect: AnswerRecords) -> int | Rest:
        """Read and answer; return the bytes read, or the rest of the work. What is not in memory is read by a
        thread, and the answer goes out later.
        """
        found: dict[int, Buffer] = {}
        rest = self._guarded(effect, self._read_hot(effect, found))
        return sum(map(len, found.values())) if next(rest, _DONE) is _DONE else rest

    def _guarded(self, effect: AnswerRecords, framing: Slices[Framed]) -> Rest:
        """Answer with what is framed; a fault on the way fails only this call."""
        try:
            parts = yield from framing
        except Exception as error:
            self.answer_failed(effect.call, error)
        else:
            if parts is not None:
                self.respond(effect.call, parts)

    def _read_hot(self, effect: AnswerRecords, found: dict[int, Buffer]) -> Slices[Framed]:
        if not self.wire.is_open(effect.call.connection_id):
            return None
        cold: dict[int, ColdRead] = {}
        pace = Pace()
        for at, read in enumerate(effect.reads):
            log = self._log_of(read)
            if log is None:
                found[at] = b""
                if read.topic_id == METADATA_TOPIC_ID:
                    found[at] = self._metadata_records(read)
                else:
                    read.partition.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                data = self._hot_records(log, read)
                if data is None:
                    cold[at] = log.cold_read(read.offset, read.max_bytes, read.end_offset)
                else:
                    found[at] = read.within_limit(data)
            if pace.spent(READ_US + len(found.get(at, b"")) // READ_BYTES_A_US):
                yield
        if cold:
            self._ports.work_threads.run(
                partial(self._read_cold, cold),
                partial(self._cold_read, effect, found, cold),
                partial(self.answer_failed, effect.call),
            )
            return None
        return (yield from self._frame(effect, found, pace))

    def _log_of(self, read: RecordsOf) -> DataLog | None:
        topic = self.node.topic_name(read.topic_id)
        if topic is None:
            return None
        return self.logs.find_log(read.topic_id, topic, read.partition.partition_index)

    def _metadata_records(self, read: RecordsOf) -> Buffer:
        try:
            data = read_records(self._metadata_log, read, self.lines)
        except OffsetOutOfRange:
            read.partition.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            return b""
        if data is None:
            read.partition.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            return b""
        return data

    def _hot_records(self, log: DataLog, read: RecordsOf) -> Buffer | None:
        """Records that are in memory, or in the page cache; None if the disk would be waited for."""
        try:
            return log.read(read.offset, read.max_bytes, read.end_offset, cached_only=True)
        except OffsetOutOfRange:
            read.partition.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        except StorageError as error:
            self._unreadable(read, error)
        return b""

    def _unreadable(self, read: RecordsOf, error: Exception) -> None:
        self.lines.error(UNREADABLE, error=str(error))
        damaged = isinstance(error, CorruptStorage)
        read.partition.error_code = ErrorCode.CORRUPT_MESSAGE if damaged else ErrorCode.KAFKA_STORAGE_ERROR

    def _read_cold(self, cold: dict[int, ColdRead]) -> dict[int, Buffer | Exception]:
        """In a thread: the records, or why there are none."""
        found: dict[int, Buffer | Exception] = {}
        for at, read in cold.items():
            try:
                found[at] = run_cold(self._disk, read)
            except Exception as error:
                found[at] = error
        return found

    def _cold_read(
        self,
        effect: AnswerRecords,
        found: dict[int, Buffer],
        cold: dict[int, ColdRead],
        read: dict[int, Buffer | Exception],
    ) -> None:
        rest = self._guarded(effect, self._take_cold(effect, found, cold, read))
        if next(rest, _DONE) is not _DONE:
            self.reads.finish(effect, rest)

    def _take_cold(
        self,
        effect: AnswerRecords,
        found: dict[int, Buffer],
        cold: dict[int, ColdRead],
        read: dict[int, Buffer | Exception],
    ) -> Slices[Framed]:
        pace = Pace()
        for at, data in read.items():
            wanted = effect.reads[at]
            log = self._log_of(wanted)
            if log is None or log.cut_count != cold[at].cut_count:
                found[at] = b""  # truncated meanwhile: the client fetches again
            elif isinstance(data, Exception):
                self._unreadable(wanted, data)
                found[at] = b""
            else:
                found[at] = wanted.within_limit(data)
            if pace.spent(READ_US):
                yield
        return (yield from self._frame(effect, found, pace))

    def _frame(self, effect: AnswerRecords, found: dict[int, Buffer], pace: Pace) -> Slices[Framed]:
        """The framed answer, without the secrets of the metadata log; None if its connection is closed."""
        for at, read in enumerate(effect.reads):
            if read.topic_id == METADATA_TOPIC_ID:
                found[at] = yield from redacted_batches(found[at])
            elif read.partition.aborted_transactions is not None and len(found[at]):
                yield from self._add_aborted(read, found[at], pace)
                if pace.spent(READ_US):
                    yield
        if not self.wire.is_open(effect.call.connection_id):
            return None
        records = [found[at] for at in range(len(effect.reads))]
        if self.node.exceeds_quota(effect.call, effect.message, records):
            records = [b""] * len(records)
        for first in range(0, len(records), COUNTED_AT_ONCE):
            if first:
                yield
            some = slice(first, first + COUNTED_AT_ONCE)
            self.node.records_sent(effect.call, effect.reads[some], records[some])
        return (yield from effect.fill_in_slices(records))

    def _add_aborted(self, read: RecordsOf, data: Buffer, pace: Pace) -> Slices[None]:
        """Add the aborted transactions of what a read_committed fetch gets."""
        log = self._log_of(read)
        if log is None:
            return
        try:
            aborted = yield from aborted_among(log, read.offset, data, pace)
        except StorageError as error:
            self._unreadable(read, error)
            return
        read.partition.aborted_transactions = [
            AbortedTransaction(one.producer_id, one.first_offset) for one in aborted
        ]
