"""The coordinator of the transactional ids of one partition of ``__transaction_state``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from kraftd.ground.effect import Effect
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import (
    CoordinatorRecord,
    UnknownRecordType,
    UnknownValueVersion,
    decode_transaction_record,
)
from kraftd.groups.shard import CoordinatorState, Limits, Shard, ShardStatus
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.effects import MarkersAnswered, SendMarkers
from kraftd.groups.transactions.records import expired_record, transaction_of, transaction_record
from kraftd.groups.transactions.states import DEAD, EXPIRABLE, ONGOING, PREPARE_COMMIT, PREPARED
from kraftd.groups.transactions.transaction import (
    NO_PARTITIONS,
    NO_TIMEOUT_MS,
    TopicPartition,
    Transaction,
    TransactionalId,
    by_topic,
)
from kraftd.messages.transaction_log_key import TransactionLogKey
from kraftd.messages.transaction_log_value import TransactionLogValue
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import Record

ABORTING, EXPIRING = "aborting", "expiring"
IDS_A_SLICE = 500  # that one event loop callback looks through
RETRY_MS = 100  # until markers and completions are written again

Answer = Callable[[ErrorCode], None]

# The partition has no records of any transaction.
WITHOUT_RECORDS = frozenset((ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION))
# The producer or the coordinator was replaced: this transaction is another's now.
SUPERSEDED = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED))

_REMAPPED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def answer_to_failed_write(error: ErrorCode) -> ErrorCode:
    """What a producer is answered whose record could not be written for this reason."""
    return _REMAPPED.get(error, error)


class TransactionShard(Shard):
    """One partition's transactional ids. `abort` aborts a transaction whose time is over."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        config: TransactionConfig,
        transaction_version: Callable[[], int],
        abort: Callable[[TransactionShard, TransactionalId], None],
        effects: list[Effect],
    ) -> None:
        load_bytes = config.transaction_state_log_load_buffer_size
        limits = Limits(config.max_batch_bytes, load_bytes, config.request_timeout_ms)
        super().__init__(partition, leader_epoch, limits, effects)
        self.state = CoordinatorState()
        self.config = config
        self.transaction_version = transaction_version
        self.abort = abort
        self.ids: dict[str, TransactionalId] = {}
        self.ongoing: dict[str, None] = {}  # those with a transaction that is not decided, the oldest first
        self.ending: dict[str, None] = {}  # those that are decided, and not complete

    # Loading

    def on_loaded_record(self, record: Record, producer_id: int) -> None:
        try:
            decoded = decode_transaction_record(record.key, record.value)
        except (UnknownRecordType, UnknownValueVersion):
            return  # of a newer release that was in use here once
        assert isinstance(decoded.key, TransactionLogKey)
        if decoded.value is None:
            self.ids.pop(decoded.key.transactional_id, None)
        else:
            assert isinstance(decoded.value, TransactionLogValue)
            id = decoded.key.transactional_id
            self.ids[id] = TransactionalId(id, transaction_of(decoded.value))

    def on_loaded(self) -> None:
        """Serve once all that was loaded is committed: what another leader truncates must not be answered.

        End what was decided before: its markers may not be written, or not all.
        """
        if self.timeline.committed < self.batches.next_offset:
            return
        self.serve(len(self.ids))
        self.schedule_aborts()
        self.schedule_expiration()
        begun = [entry for entry in self.ids.values() if entry.current.state is ONGOING]
        for entry in sorted(begun, key=lambda entry: entry.current.start_ms):
            self.ongoing[entry.id] = None
        for entry in self.ids.values():
            if entry.current.state in PREPARED:
                self.ending[entry.id] = None
                self.complete(entry)

    def on_settled(self) -> None:
        if self.is_replayed and self.status is ShardStatus.LOADING:
            self.on_loaded()

    # Changes

    def change(self, entry: TransactionalId, new: Transaction, then: Answer) -> None:
        """Write a new state. It counts once its record is committed; `then` gets NONE, or why it is not. It
        may wait for as long as a transaction of the producer may last, as in Kafka.
        """
        entry.pending = new.state

        def after(error: ErrorCode | None) -> None:
            if error is None:
                self.apply(entry, new)
                then(ErrorCode.NONE)
            else:
                entry.pending = None
                then(answer_to_failed_write(error))

        record = transaction_record(entry.id, new, self.transaction_version())
        self.submit(Outcome([record], replayed=False, after=after, timeout_ms=new.timeout_ms))

    def apply(self, entry: TransactionalId, new: Transaction) -> None:
        entry.pending, entry.current = None, new
        for ids, is_in in ((self.ongoing, new.state is ONGOING), (self.ending, new.state in PREPARED)):
            if is_in:
                ids[entry.id] = None
            else:
                ids.pop(entry.id, None)

    # Markers

    def complete(self, entry: TransactionalId) -> None:
        """Have the markers of a decided transaction written; then it is complete."""
        entry.has_failed_fence = False
        entry.completed = entry.current.completed(self.state.now_ms)
        entry.pending = entry.completed.state
        entry.failed_markers = NO_PARTITIONS
        self.send_markers(entry, entry.current.partitions)

    def send_markers(self, entry: TransactionalId, places: frozenset[TopicPartition]) -> None:
        """Send the markers of some partitions, which are all that are not written yet, or failed."""
        current = entry.current
        if not current.partitions:
            self.write_completed(entry)
            return
        self.effects.append(
            SendMarkers(
                self.partition,
                self.leader_epoch,
                entry.id,
                current.producer_id,
                current.producer_epoch,
                current.state is PREPARE_COMMIT,
                current.client_version,
                tuple((topic, index) for topic, indexes in by_topic(places) for index in indexes),
            )
        )

    def markers_answered(self, event: MarkersAnswered) -> None:
        """Some markers are written, some have to be sent again, and other leaders may not have answered."""
        entry = self.ids.get(event.transactional_id)
        if entry is None or entry.completed is None:
            return
        current = entry.current
        if (current.producer_id, current.producer_epoch) != (event.producer_id, event.producer_epoch):
            return
        is_former = event.coordinator_epoch != self.leader_epoch
        left: set[TopicPartition] = set(current.partitions.difference(event.results))
        failed: set[TopicPartition] = set()
        for place, error in event.results.items():
            if error is ErrorCode.NONE:  # nearly all of them, perhaps thousands
                continue
            if error not in WITHOUT_RECORDS and place in current.partitions:
                left.add(place)
                if is_former or error not in SUPERSEDED:
                    failed.add(place)
        entry.current = replace(current, partitions=frozenset(left))
        if failed:
            if not entry.failed_markers:
                due_ms = self.state.now_ms + RETRY_MS
                again = partial(self._send_again, entry, entry.completed)
                self.state.deadlines.schedule(("markers", entry.id), due_ms, again)
            entry.failed_markers |= failed
        elif not left:
            self.write_completed(entry)

    def _send_again(self, entry: TransactionalId, completed: Transaction) -> Outcome:
        if entry.completed is completed:
            failed, entry.failed_markers = entry.failed_markers, NO_PARTITIONS
            self.send_markers(entry, failed)
        return Outcome()

    def write_completed(self, entry: TransactionalId) -> None:
        """Write that all markers are written."""
        new = entry.completed
        if new is None:
            return

        def then(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                entry.completed = None
                return
            entry.pending = new.state
            if self.status is ShardStatus.ACTIVE:
                self.state.deadlines.schedule(
                    ("completed", entry.id), self.state.now_ms + RETRY_MS, partial(self._write_again, entry)
                )

        self.change(entry, new, then)

    def _write_again(self, entry: TransactionalId) -> Outcome:
        self.write_completed(entry)
        return Outcome()

    # Time

    def schedule_aborts(self) -> None:
        due_ms = self.state.now_ms + self.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self.state.deadlines.schedule(ABORTING, due_ms, self.abort_late)

    def abort_late(self) -> Outcome:
        """Abort the transactions that have lasted longer than their producers have asked for."""
        self.schedule_aborts()
        for id in list(self.ongoing):
            entry = self.ids[id]
            current = entry.current
            if (
                entry.pending is None
                and current.timeout_ms != NO_TIMEOUT_MS
                and current.start_ms + current.timeout_ms < self.state.now_ms
            ):
                self.abort(self, entry)
        return Outcome()

    def schedule_expiration(self) -> None:
        due_ms = self.state.now_ms + self.config.transaction_remove_expired_transaction_cleanup_interval_ms
        self.state.deadlines.schedule(EXPIRING, due_ms, self.expire)

    def expire(self) -> Outcome:
        """Remove the transactional ids that are idle for transactional.id.expiration.ms."""
        self.schedule_expiration()
        return self._expire(list(self.ids))

    def _expire(self, ids: list[str]) -> Outcome:
        if len(ids) > IDS_A_SLICE:
            rest = partial(self._expire, ids[IDS_A_SLICE:])
            self.state.deadlines.schedule("expiring on", self.state.now_ms + 1, rest)
        oldest_ms = self.state.now_ms - self.config.transactional_id_expiration_ms
        gone: list[TransactionalId] = []
        records: list[CoordinatorRecord] = []
        for id in ids[:IDS_A_SLICE]:
            entry = self.ids.get(id)
            if (
                entry is not None
                and entry.pending is None
                and entry.current.state in EXPIRABLE
                and entry.current.last_update_ms <= oldest_ms
            ):
                entry.pending = DEAD
                gone.append(entry)
                records.append(expired_record(id))

        def after(error: ErrorCode | None) -> None:
            for entry in gone:
                entry.pending = None
                if error is None and self.ids.get(entry.id) is entry:
                    del self.ids[entry.id]

        return Outcome(records, replayed=False, after=after if records else None, atomic=False)
