"""One partition of a broker: leader, follower or offline, by the rules of Kafka's Partition and
ReplicaManager.

    partition.follow_metadata(registration, now_ms)      # leads, follows or does neither from now on
    produced = partition.produce(data, version, acks, now_ms) ... the executor writes produced.append ...
    effects = partition.appended(end_offset, now_ms)     # the high watermark moves when every ISR member
    has it

Two ends are kept: `next_offset` is where the next batch goes, `log_end_offset` what is written. What is
judged and not yet written is undone by `append_failed`. Reads are judged in `reading.py`, followers in
`replication.py`.
"""

from __future__ import annotations

import enum

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.partition.config import PartitionConfig
from kraftd.partition.effects import AppendBatches, AssignEpoch, LogStartMoved, MarksMoved
from kraftd.partition.isr import RECOVERED, unproposed
from kraftd.partition.producer_entry import (
    LEGACY_TRANSACTIONS,
    NO_OFFSET,
    Origin,
    ProducerEntry,
    ProducerError,
    Sequenced,
)
from kraftd.partition.producers import NO_GUARD, CompletedTransaction, ProducerStates
from kraftd.partition.replicas import FollowerProgress
from kraftd.partition.validation import ProduceRefusal, ValidBatch, find_refusal, validate
from kraftd.partition.views import BrokerView, EpochView, Registration
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.python_batches import Buffer
from kraftd.wire.records import NO_TIMESTAMP

ACKS_ALL = -1
VALID_ACKS = (ACKS_ALL, 0, 1)
NO_EPOCH = -1
HIGH_WATERMARK_SENTINEL = -1  # the offset of a DeleteRecords that means the high watermark


class Role(enum.Enum):
    """What this broker is to the partition."""

    NONE = "none"  # nothing is known of it yet
    LEADER = "leader"
    FOLLOWER = "follower"
    OFFLINE = "offline"  # its log directory failed


LEADER, FOLLOWER, OFFLINE = Role.LEADER, Role.FOLLOWER, Role.OFFLINE
_NOT_LEADER = ProduceRefusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_OFFLINE = ProduceRefusal(ErrorCode.KAFKA_STORAGE_ERROR)
_NOT_ENOUGH = ProduceRefusal(ErrorCode.NOT_ENOUGH_REPLICAS, shows_log_start=True)


class Produced(Struct, frozen=True, gc=False):
    """Records that are appended, or were before: then `append` is None.

    An answer with acks=-1 waits until the high watermark is at `required_offset`, others until it is written.
    """

    base_offset: int
    append_time_ms: int
    log_start_offset: int
    required_offset: int
    append: AppendBatches | None

    def __repr__(self) -> str:
        kind = "duplicate" if self.append is None else "batch"
        return f"<Produced {kind} {self.base_offset}..{self.required_offset - 1}>"


class Partition:
    """See the module. The fields are read by any package and changed by this one alone.

    `log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset <= next_offset`.
    """

    __slots__ = (
        "_producers",
        "brokers",
        "config",
        "epochs",
        "followers",
        "high_watermark",
        "index",
        "isr",
        "leader_epoch",
        "leader_epoch_start",
        "leader_id",
        "local_id",
        "log_end_offset",
        "log_start_offset",
        "next_offset",
        "partition_epoch",
        "replicas",
        "role",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        local_id: int,
        config: PartitionConfig,
        brokers: BrokerView,
        epochs: EpochView,
        *,
        log_start_offset: int = 0,
        log_end_offset: int = 0,
        high_watermark: int = 0,
        producers: ProducerStates | None = None,
    ) -> None:
        """A partition as its log is after recovery; the high watermark is a checkpoint's."""
        self.topic = topic
        self.index = index
        self.local_id = local_id
        self.config = config
        self.brokers = brokers
        self.epochs = epochs
        self.role = Role.NONE
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr = _NO_ISR
        self.followers: dict[int, FollowerProgress] = _NO_FOLLOWERS
        self.leader_epoch_start: int | None = None
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.next_offset = log_end_offset
        self.high_watermark = max(log_start_offset, min(high_watermark, log_end_offset))
        self._producers = None if producers is None or producers.is_empty else producers
        if self._producers is not None:
            self._producers.replicated(self.high_watermark)

    def __repr__(self) -> str:
        return (
            f"<Partition {self.name} {self.role.value} epoch {self.leader_epoch}, offsets "
            f"{self.log_start_offset}..{self.log_end_offset}, high watermark {self.high_watermark}, "
            f"{self.isr}>"
        )

    # --- what it is ---

    @property
    def name(self) -> str:
        """Topic and index, made when it is asked for: a text for each of very many would be memory."""
        return f"{self.topic}-{self.index}"

    @property
    def is_leader(self) -> bool:
        return self.role is LEADER

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided and replicated; at most the high watermark."""
        if self._producers is None:
            return self.high_watermark
        unstable = self._producers.first_unstable_offset()
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def producers(self) -> ProducerStates:
        """The producers; made at their first use, for most partitions have none."""
        if self._producers is None:
            self._producers = ProducerStates(self.next_offset)
        return self._producers

    @property
    def min_isr(self) -> int:
        """min.insync.replicas, or how many replicas there are if these are fewer."""
        return min(self.config.min_insync_replicas, len(self.followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        count = len(self.isr.committed)
        return count < self.config.min_insync_replicas and self.role is LEADER and count < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return self.role is LEADER and len(self.isr.committed) == self.min_isr

    @property
    def lacks_member(self) -> bool:
        """Return whether it leads, and a replica is outside of the ISR."""
        return self.role is LEADER and len(self.isr.committed) < len(self.replicas)

    def active_producers(self) -> list[ProducerEntry] | ErrorCode:
        """The producers as DescribeProducers shows them; NOT_LEADER_OR_FOLLOWER without a log."""
        if self.role is OFFLINE or self.role is Role.NONE:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return [] if self._producers is None else list(self._producers)

    def snapshot_before(self, offset: int) -> list[SnapshotEntry]:
        """The producers of a `.snapshot` file at an offset: at the log end, or where batches wait to be
        written."""
        return [] if self._producers is None else self._producers.snapshot(offset)

    def expire_producers(self, now_ms: int) -> int:
        """Forget idle producers; return how many."""
        return 0 if self._producers is None else self._producers.expire(self.config, now_ms)

    @property
    def producer_count(self) -> int:
        """The producers that are remembered."""
        return 0 if self._producers is None else len(self._producers)

    def has_transaction(self, producer_id: int) -> bool:
        """Return whether a producer has a transaction here."""
        return self._producers is not None and self._producers.has_transaction(producer_id)

    def has_late_transaction(self, now_ms: int) -> bool:
        """Return whether a transaction has been open for too long."""
        return self._producers is not None and self._producers.has_late_transaction(self.config, now_ms)

    # --- metadata ---

    def follow_metadata(self, registration: Registration, now_ms: int) -> list[Effect]:
        """Lead or follow as the metadata says. Older partition epochs are ignored.

        A follower's executor then truncates and fetches from `leader_id`; what waits for a leader here is
        answered NOT_LEADER_OR_FOLLOWER.
        """
        if registration.partition_epoch < self.partition_epoch or self.role is OFFLINE:
            return []
        if registration.leader == self.local_id:
            return self._lead(registration, now_ms)
        self.role = FOLLOWER
        self.leader_id = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.leader_epoch_start = None
        self.partition_epoch = registration.partition_epoch
        self.replicas = registration.replicas
        self.followers = _NO_FOLLOWERS
        self.isr = _NO_ISR
        return []

    def _lead(self, registration: Registration, now_ms: int) -> list[Effect]:
        was_leader = self.role is LEADER
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        self.role, self.leader_id = LEADER, self.local_id
        self.replicas = registration.replicas
        if not was_leader:
            self.isr, self.followers = _NO_ISR, {}
        self.followers = {
            each: self.followers.get(each) or FollowerProgress(each)
            for each in registration.replicas
            if each != self.local_id
        } or _NO_FOLLOWERS
        if not was_leader or is_new_epoch or registration.partition_epoch > self.partition_epoch:
            self.commit_isr(registration.isr)  # else known by an answer: a proposal since then is on its way
        self.partition_epoch = registration.partition_epoch
        effects: list[Effect] = []
        if is_new_epoch:
            start = self.next_offset
            effects.append(AssignEpoch(registration.leader_epoch, start))
            for follower in self.followers.values():
                follower.begin_epoch(
                    now_ms, start, is_new_leader=not was_leader, in_isr=follower.broker_id in registration.isr
                )
            self.leader_epoch, self.leader_epoch_start = registration.leader_epoch, start
        return effects + self.advance_high_watermark(now_ms)

    def commit_isr(self, isr: tuple[int, ...], leader_recovery_state: int = RECOVERED) -> None:
        """Take an ISR from the metadata, or from a controller's answer."""
        if self.isr.has_proposed:
            self.isr.commit(isr, leader_recovery_state)
        else:
            self.isr = unproposed(isr, leader_recovery_state)

    def go_offline(self) -> None:
        """The log directory failed: nothing is served until the broker starts anew."""
        self.role = OFFLINE
        self.leader_epoch_start = None
        self.isr, self.followers, self._producers = _NO_ISR, _NO_FOLLOWERS, None

    # --- produce ---

    def produce(
        self, data: Buffer, version: int, acks: int, now_ms: int, *, guard: int = NO_GUARD
    ) -> Produced | ProduceRefusal:
        """Judge a client's records; those of the result are to be written before anything else of the
        partition.

        `data` is changed in place where it is writable. `guard` is that of `start_verification`.
        """
        if self.role is not LEADER or (acks == ACKS_ALL and self.is_under_min_isr):
            return find_refusal(data, version) or self._cannot_append()
        found = validate(
            data, self.config, self, self.next_offset, self.leader_epoch, now_ms, version=version
        )
        if isinstance(found, ProduceRefusal):
            return found
        return self._append(found, Origin.CLIENT, guard, LEGACY_TRANSACTIONS)

    def append_own(
        self,
        data: bytearray,
        acks: int,
        now_ms: int,
        *,
        transaction_version: int = LEGACY_TRANSACTIONS,
        guard: int = NO_GUARD,
    ) -> Produced | ProduceRefusal:
        """Judge a batch that a coordinator of this broker made, or a transaction's marker, as `produce`
        does."""
        if self.role is not LEADER or (acks == ACKS_ALL and self.is_under_min_isr):
            return self._cannot_append()
        found = validate(
            data, self.config, self, self.next_offset, self.leader_epoch, now_ms, is_client=False
        )
        if isinstance(found, ProduceRefusal):
            return found
        return self._append(found, Origin.COORDINATOR, guard, transaction_version)

    def start_verification(
        self, header: Sequenced, now_ms: int, *, supports_epoch_bump: bool
    ) -> int | ErrorCode:
        """The guard for a transactional batch whose coordinator is to be asked first, NO_GUARD if it need
        not be.

        NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR or INVALID_PRODUCER_EPOCH (KIP-890).
        """
        if self.role is not LEADER:
            return self._cannot_append().error
        try:
            return self.producers.start_verification(header, now_ms, supports_epoch_bump=supports_epoch_bump)
        except ProducerError as error:
            return error.error

    def _cannot_append(self) -> ProduceRefusal:
        if self.role is LEADER:
            return _NOT_ENOUGH
        return _OFFLINE if self.role is OFFLINE else _NOT_LEADER

    def _append(
        self, batch: ValidBatch, origin: Origin, guard: int, transaction_version: int
    ) -> Produced | ProduceRefusal:
        header = batch.header
        end = header.base_offset + header.last_offset_delta + 1
        aborted: tuple[CompletedTransaction, ...] = ()
        if header.producer_id > -1 and not (origin is Origin.CLIENT and self.producers.follows(header)):
            producers = self.producers
            if origin is Origin.CLIENT and (duplicate := producers.find_duplicate(header)) is not None:
                first, after = duplicate.first_offset, duplicate.last_offset + 1
                return Produced(first, duplicate.timestamp_ms, self.log_start_offset, after, None)
            try:
                completed = producers.append(
                    header,
                    batch.view,
                    origin,
                    self.config,
                    guard=guard,
                    transaction_version=transaction_version,
                )
            except ProducerError as error:
                return ProduceRefusal(error.error, shows_log_start=True)
            if completed is not None and completed.is_aborted:
                aborted = (completed,)
        elif self._producers is not None:
            self._producers.end_offset = end
        append = AppendBatches(self.next_offset, end, (header,), (batch.view,), aborted)
        self.next_offset = end
        return Produced(append.base_offset, batch.append_time_ms, self.log_start_offset, end, append)

    def appended(self, end_offset: int, now_ms: int) -> list[Effect]:
        """Everything below `end_offset` is written: the high watermark may follow."""
        self.log_end_offset = end_offset
        if self._producers is not None:
            self._producers.written(end_offset)
        return self.advance_high_watermark(now_ms) if self.role is LEADER else []

    def append_failed(self, base_offset: int) -> None:
        """Nothing from `base_offset` on was written: sequences, transactions and offsets are as before."""
        # An append before it may have failed already: then the offset is past the next one.
        self.next_offset = max(min(base_offset, self.next_offset), self.log_end_offset)
        if self._producers is not None:
            self._producers.roll_back(self.next_offset)

    def acknowledged(self, required_offset: int) -> ErrorCode | None:
        """The answer to a produce with acks=-1; None while it has to wait."""
        if self.role is not LEADER:
            return self._cannot_append().error
        if self.high_watermark < required_offset:
            return None
        enough = self.min_isr <= len(self.isr.maximal)
        return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    # --- marks ---

    def advance_high_watermark(self, now_ms: int) -> list[Effect]:
        """Let a leader's high watermark follow: to what every member of the maximal ISR has, and every
        follower that is caught up and may join. Below min.insync.replicas it stays (KIP-966).
        """
        if self.role is not LEADER or self.is_under_min_isr:
            return []
        offset = end = self.log_end_offset
        for follower in self.followers.values():
            if follower.log_end_offset < offset and (
                follower.broker_id in self.isr.maximal
                or (
                    follower.is_caught_up(end, now_ms, self.config.replica_lag_time_max_ms)
                    and self.may_join_isr(follower)
                )
            ):
                offset = follower.log_end_offset
        return self.move_high_watermark(offset) if offset > self.high_watermark else []

    def move_high_watermark(self, offset: int) -> list[Effect]:
        """Set the high watermark, bounded by the log's."""
        offset = max(self.log_start_offset, min(offset, self.log_end_offset))
        if offset == self.high_watermark:
            return []
        self.high_watermark = offset
        if self._producers is not None:
            self._producers.replicated(offset)
        return [MarksMoved(offset, self.last_stable_offset)]

    def may_join_isr(self, follower: FollowerProgress) -> bool:
        """Return whether a follower may be in the ISR: neither fenced nor shutting down, and its fetches
        are of its present broker epoch (KIP-903).
        """
        alive_epoch = self.brokers.alive_epoch(follower.broker_id)
        if alive_epoch is None or follower.broker_epoch is None:
            return False
        is_present = follower.broker_epoch in (NO_EPOCH, alive_epoch)
        return is_present and not self.brokers.is_shutting_down(follower.broker_id)

    def move_log_start(self, offset: int) -> list[Effect]:
        """Let the log start at an offset, at most the high watermark, if it is higher than the present
        one."""
        if offset <= self.log_start_offset:
            return []
        self.log_start_offset = offset
        if self._producers is not None:
            self._producers.replicated(offset)
        return [LogStartMoved(offset)]

    def truncated(
        self, log_start_offset: int, log_end_offset: int, producers: ProducerStates | None = None
    ) -> list[Effect]:
        """The log has these bounds now; `producers` were loaded and replayed by the caller."""
        self._producers = self._producers if producers is None else producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.next_offset = log_end_offset
        if self._producers is not None:
            self._producers.end_offset = log_end_offset
            self._producers.replicated(min(self.high_watermark, log_end_offset))
            if self._producers.is_empty:
                self._producers = None
        return self.move_high_watermark(self.high_watermark)

    # --- epochs ---

    def moved(self, epochs: EpochView) -> None:
        """Another log of the same content has taken the place of the log; these are its epochs."""
        self.epochs = epochs

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """NONE, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH for what a request says is the leader epoch;
        NO_EPOCH says nothing (KIP-320).
        """
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return ErrorCode.NONE
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH

    def check_readable(self, current_leader_epoch: int, *, only_leader: bool) -> ErrorCode:
        """NONE, or why a request of a leader epoch is not served here."""
        if self.role is OFFLINE:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if current_leader_epoch != self.leader_epoch:  # nearly every reader knows the epoch
            error = self.check_leader_epoch(current_leader_epoch)
            if error is not ErrorCode.NONE:
                return error
        if self.role is Role.NONE or (only_leader and self.role is not LEADER):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE


# Shared by all partitions that do not lead: 100,000 of them are nothing.
_NO_ISR = unproposed(())
_NO_FOLLOWERS: dict[int, FollowerProgress] = {}

__all__ = [
    "ACKS_ALL", "FOLLOWER", "HIGH_WATERMARK_SENTINEL", "LEADER", "NO_EPOCH", "NO_OFFSET", "NO_TIMESTAMP",
    "OFFLINE", "VALID_ACKS", "Partition", "Produced", "Role",
]  # fmt: skip
