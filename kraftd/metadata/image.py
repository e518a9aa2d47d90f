"""The metadata image: the state that results from the records of the metadata log.

Only ``apply`` changes it, record by record, in offset order. What it returns is read-only: values are
immutable, and mappings belong to the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata import journal as j
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.isr_runs import change_run
from kraftd.metadata.partition_index import HostedPartitions, PartitionWalk, TopicPartition
from kraftd.metadata.partition_runs import add_run
from kraftd.metadata.replay import REPLAY
from kraftd.metadata.snapshot_records import snapshot_records
from kraftd.metadata.state import AclState, PartitionState, TopicState
from kraftd.metadata.tables import Tables
from kraftd.types import ZERO_UUID
from kraftd.wire.record_frame import VersionedRecord

_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_PARTITIONS = HostedPartitions()
_RUN_KINDS = frozenset({PartitionRecord, PartitionChangeRecord})
_OF_TRANSACTIONS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})
_MAX_ENTRIES_SETTLED_PER_CALL = 4_000  # about 2 ms

# The fields that are equal in equal images.
STATE = (
    "features",
    "brokers",
    "controllers",
    "topics",
    "configs",
    "quotas",
    "acls",
    "scram",
    "delegation_tokens",
    "next_producer_id",
)


class Image(Tables):
    """The whole metadata of a cluster as of one offset.  Equality compares the state, not offsets, indexes
    or the journal.
    """

    # Records

    def apply(self, message: object, offset: int, epoch: int) -> None:
        """Replay one record.  Raises ReplayError if it contradicts the image or is of unknown type."""
        replay = REPLAY.get(type(message))
        if replay is None:
            raise ReplayError(f"offset {offset}: {type(message).__name__} is not a metadata record")
        if self._journal is not None:
            entries = self._journal.entries
            entries.append((offset, j.FIELD, None, "epoch", self.epoch))
            entries.append((offset, j.FIELD, None, "offset", self.offset))
        self.offset = offset
        self.epoch = epoch
        try:
            replay(self, message)
        except ReplayError as error:
            raise ReplayError(f"offset {offset}: {type(message).__name__}: {error}") from None

    def apply_all(
        self, messages: Sequence[object], offset: int, epoch: int, *, of_snapshot: bool = False
    ) -> None:
        """Replay records of consecutive offsets; those of a snapshot all have the same offset.

        Same as ``apply`` of each, but faster. Raises ReplayError, also for a metadata transaction in a
        snapshot; the records before the failed one are applied then.
        """
        at, count = 0, len(messages)
        step = 0 if of_snapshot else 1
        while at < count:
            message = messages[at]
            if type(message) in _RUN_KINDS and not (of_snapshot and self._journal is not None):
                applied = self._apply_run(messages, at, offset, epoch, step)
                if applied:
                    at += applied
                    offset += applied * step
                    continue
            if of_snapshot and type(message) in _OF_TRANSACTIONS:
                raise ReplayError(f"offset {offset}: {type(message).__name__} cannot stand in a snapshot")
            self.apply(message, offset, epoch)
            at += 1
            offset += step

    def _apply_run(self, messages: Sequence[object], at: int, offset: int, epoch: int, step: int) -> int:
        """Apply the run of new or changed partitions that begins there; returns how many there are."""
        entries = None
        if self._journal is not None:
            entries = self._journal.entries
            entries.append((offset, j.FIELD, None, "epoch", self.epoch))
            entries.append((offset, j.FIELD, None, "offset", self.offset))
        if type(messages[at]) is PartitionRecord:
            count = add_run(self, messages, at, offset, entries, step)
        else:
            count = change_run(self, messages, at, offset, entries, step)
        if count:
            self.offset = offset + (count - 1) * step
            self.epoch = epoch
        elif entries is not None:
            entries.pop()
            entries.pop()
        return count

    def records(self) -> Iterator[VersionedRecord]:
        """The image written back as records, in the order of Kafka's snapshots; equal images give equal
        records.

        Raises UnwritableMetadataError if the metadata.version cannot express what the image holds.
        """
        return snapshot_records(self)

    # Reading

    @property
    def topic_count(self) -> int:
        return len(self.topics)

    def topic(self, topic_id: bytes) -> TopicState | None:
        return self.topics.get(topic_id)

    def colliding_topic(self, name: str) -> str | None:
        """Another topic whose name is the same in metrics, where "." and "_" are equal."""
        return self._names.colliding(name)

    def topic_id(self, name: str) -> bytes:
        """The id of the topic of a name; ZERO_UUID if there is none."""
        return self._names.ids.get(name, ZERO_UUID)

    def topic_names(self) -> Mapping[str, bytes]:
        """Names to ids, a live view."""
        return MappingProxyType(self._names.ids)

    def partition(self, topic_id: bytes, index: int) -> PartitionState | None:
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The explicit dynamic values of a resource, empty where there are none."""
        return self.configs.get((resource_type, name), _NOTHING)

    def has_acl(self, acl: AclState) -> bool:
        """Return whether the image holds an equal ACL, in O(1)."""
        return acl in self._acl_counts

    # Sets of partitions: topics and partitions in the order in which they were first hosted. The image must
    # not change during iteration.

    def partitions_of(self, broker_id: int) -> Iterator[TopicPartition]:
        """Every partition that has a replica on the broker, or the broker in its ISR."""
        return iter(self._hosted.get(broker_id, _NO_PARTITIONS))

    def settle_hosted(self, broker_id: int) -> bool:
        """Prepare a part of ``partitions_of``, which may take long; returns whether it is ready."""
        return self._hosted.get(broker_id, _NO_PARTITIONS).settle(_MAX_ENTRIES_SETTLED_PER_CALL)

    def hosted_masks(self, broker_id: int) -> list[tuple[bytes, int]]:
        """``partitions_of`` as topic ids and masks (bit i is partition i). The list is a copy, so the image
        may change during iteration.
        """
        return self._hosted.get(broker_id, _NO_PARTITIONS).masks()

    def partitions_with_elr_member(self, broker_id: int) -> Iterator[TopicPartition]:
        """Partitions whose ELR has the broker; the last known ELR does not count."""
        for topic_id, index in self._with_elr:
            if broker_id in self.topics[topic_id].partitions[index].elr:
                yield topic_id, index

    def partitions_without_leader(self) -> Iterator[TopicPartition]:
        return iter(self._leaderless)

    def partitions_with_non_preferred_leader(self) -> Iterator[TopicPartition]:
        """Partitions not led by their first replica, leaderless ones included."""
        return iter(self._not_preferred)

    def walk_without_leader(self) -> PartitionWalk:
        """Walk ``partitions_without_leader`` in parts, between which the image may change."""
        return PartitionWalk(self._leaderless)

    def walk_with_non_preferred_leader(self) -> PartitionWalk:
        """Walk ``partitions_with_non_preferred_leader`` in parts, between which the image may change."""
        return PartitionWalk(self._not_preferred)

    @property
    def leaderless_count(self) -> int:
        """How many partitions have no leader, in O(1)."""
        return self._leaderless.count

    @property
    def not_preferred_count(self) -> int:
        """How many partitions are not led by their first replica, leaderless ones included, in O(1)."""
        return self._not_preferred.count

    def reassigning_partitions(self) -> Iterator[TopicPartition]:
        return iter(self._reassigning)

    def led_count(self, broker_id: int) -> int:
        """How many partitions the broker leads, in O(1)."""
        return self._led_count.get(broker_id, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Image):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in STATE)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<Image at {self.offset}@{self.epoch}: {len(self.brokers)} brokers, {len(self.topics)} topics, "
            f"{self.partition_count} partitions, metadata.version {self.metadata_version}>"
        )
