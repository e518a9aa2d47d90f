"""The partitions of a broker as fetches read them; the metadata log is one more of them.

What a fetch reads is noted, and the performer of the answer reads it from the logs.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.answers.log_source import READ_COMMITTED, Identity, LogSource, is_metadata, may_read
from kraftd.answers.view import ClusterView
from kraftd.broker_node.partitions.replicas import Hosted, Replicas
from kraftd.broker_node.replication_quotas import ReplicationQuotas
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import EVERYTHING_BYTES, Availability, PartitionStatus, Reader
from kraftd.ground.effect import Effect
from kraftd.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from kraftd.partition.reading import FetchVerdict, Isolation, judge_fetch, marks
from kraftd.partition.replica_selection import THE_LEADER, preferred_replica
from kraftd.partition.replication import follower_fetched, is_of_former_epoch
from kraftd.requests.boundary import Boundary
from kraftd.requests.effects import RecordsOf
from kraftd.types import ZERO_UUID, Uuid
from kraftd.wire.error_code import ErrorCode

FIRST_VERSION_OF_FOLLOWERS = 11  # consumers of it and later may read from a follower (KIP-392)
NOT_SERVED, FAILED = Availability(PartitionStatus.NOT_SERVED), Availability(PartitionStatus.FAILED)
NOTHING = Availability(PartitionStatus.SERVED)  # to read, for now
FOLLOWED_US, PROGRESS_US = 8, 40  # of a follower's fetch of a partition; with marks that move and wake others


class PartitionSource:
    """A source of fetch sessions. `log_source` is that of the metadata log; `local_epoch` gives the epoch of
    this broker. With `selects_by_rack` consumers are sent to a follower in their rack.
    """

    def __init__(
        self,
        view: ClusterView,
        boundary: Boundary,
        replicas: Replicas,
        log_source: LogSource,
        local_epoch: Callable[[], int],
        quotas: ReplicationQuotas,
        *,
        selects_by_rack: bool = False,
    ) -> None:
        self._view = view
        self._boundary = boundary
        self._replicas = replicas
        self.log_source = log_source
        self._local_epoch = local_epoch
        self._quotas = quotas
        self._selects_by_rack = selects_by_rack
        self._noted: dict[int, RecordsOf] = {}  # by the identity of the partition's answer
        self._held: list[tuple[str, int]] = []  # by a throttle, after they were found to have records
        self._progressed: list[tuple[Hosted, list[Effect]]] = []  # by fetches of followers

    def __repr__(self) -> str:
        return f"<PartitionSource of {self._replicas!r}>"

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The topic of that id; None while unknown."""
        return self.log_source.topic_name(topic_id)

    def availability(self, slot: Slot, reader: Reader) -> Availability:
        """The partition's state, without reading it."""
        hosted = self._hosted(slot)
        if hosted is None and is_metadata(slot):
            return self.log_source.availability(slot, reader)
        if not may_read(self._boundary, slot, reader, quietly=True):
            return NOT_SERVED
        if hosted is None:
            return FAILED if self._exists(slot) or self._is_recreated(slot) else NOT_SERVED
        return self._available(hosted, slot, reader, self._judge(hosted, slot, reader))

    def _available(
        self, hosted: Hosted, slot: Slot, reader: Reader, verdict: FetchVerdict | ErrorCode
    ) -> Availability:
        if type(verdict) is not FetchVerdict or verdict.diverging is not None:
            return FAILED
        if self._selects_by_rack and self._preferred(hosted, slot, reader, verdict) != THE_LEADER:
            return FAILED
        if verdict.is_empty or hosted.log is None or self._is_held_back(hosted, reader):
            return NOTHING
        if hosted.log.are_apart(verdict.offset, verdict.end_offset):
            return Availability(PartitionStatus.SERVED, EVERYTHING_BYTES)
        available_bytes = max(1, hosted.log.bytes_between(verdict.offset, verdict.end_offset))
        return Availability(PartitionStatus.SERVED, min(available_bytes, max(1, slot.max_bytes)))

    def fetched(self, slot: Slot, reader: Reader, now_ms: int) -> tuple[Availability, int]:
        """Note the progress of a follower, which a fetch shows that is served and does not diverge."""
        hosted = self._hosted(slot)
        if hosted is None or not may_read(self._boundary, slot, reader, quietly=True):
            return self.availability(slot, reader), 0
        assert hosted.partition is not None
        verdict = self._judge(hosted, slot, reader)
        if type(verdict) is not FetchVerdict or verdict.diverging is not None:
            return FAILED, FOLLOWED_US
        effects = follower_fetched(
            hosted.partition,
            reader.replica_id,
            slot.fetch_offset,
            slot.reader_log_start,
            now_ms,
            broker_epoch=reader.broker_epoch,
            local_broker_epoch=self._local_epoch(),
            times=slot,
        )
        available = self._available(hosted, slot, reader, verdict)
        if not effects or type(effects) is not list:
            return available, FOLLOWED_US
        self._progressed.append((hosted, effects))
        return available, PROGRESS_US

    def take_progress(self) -> list[tuple[Hosted, list[Effect]]]:
        """Remove and return what follows from the progress of followers."""
        progressed, self._progressed = self._progressed, []
        return progressed

    def read(
        self, slot: Slot, reader: Reader, max_bytes: int, at_least_one: bool
    ) -> tuple[PartitionData, int]:
        """The answer for the partition, and the bytes of its records, which are noted."""
        hosted = self._hosted(slot)
        if hosted is None and is_metadata(slot):
            return self.log_source.read(slot, reader, max_bytes, at_least_one)
        # Records are empty with an error, never null: librdkafka cannot read that.
        data = PartitionData(partition_index=slot.key[1], high_watermark=-1, records=b"")
        if not may_read(self._boundary, slot, reader, quietly=False):
            data.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return data, 0
        if hosted is None:
            data.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self._exists(slot):
                data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                data.aborted_transactions = None
            elif self._is_recreated(slot):
                data.error_code = ErrorCode.INCONSISTENT_TOPIC_ID
                data.aborted_transactions = None
            return data, 0
        verdict = self._judge(hosted, slot, reader)
        hosted.traffic.fetches += 1
        if self._selects_by_rack:
            data.preferred_read_replica = self._preferred(hosted, slot, reader, verdict)
        is_elsewhere = data.preferred_read_replica != THE_LEADER
        if not isinstance(verdict, FetchVerdict) and not is_elsewhere:
            data.error_code = verdict
            data.aborted_transactions = None
            return data, 0
        assert hosted.partition is not None
        found = verdict.marks if isinstance(verdict, FetchVerdict) else marks(hosted.partition)
        data.high_watermark = found.high_watermark
        data.last_stable_offset = found.last_stable_offset
        data.log_start_offset = found.log_start_offset
        if is_elsewhere or not isinstance(verdict, FetchVerdict):
            data.aborted_transactions = None
            return data, 0
        if verdict.diverging is not None:
            data.diverging_epoch = EpochEndOffset(verdict.diverging.epoch, verdict.diverging.offset)
            data.aborted_transactions = None
            return data, 0
        is_consumers = reader.isolation_level == READ_COMMITTED and not reader.is_follower
        data.aborted_transactions = [] if is_consumers else None
        if verdict.is_empty or hosted.log is None or (max_bytes <= 0 and not at_least_one):
            return data, 0
        if self._is_held_back(hosted, reader):
            self._held.append((hosted.topic, hosted.index))
            return data, 0
        read_bytes = max(1, min(max_bytes, slot.max_bytes))
        available_bytes = hosted.log.bytes_between(verdict.offset, verdict.end_offset)
        first_bytes = hosted.log.batch_bytes(verdict.offset)
        if first_bytes > read_bytes:
            if not at_least_one:
                data.aborted_transactions = None  # as in Kafka
                return data, 0
            read_bytes = first_bytes
        self._noted[id(data)] = RecordsOf(
            data, verdict.offset, verdict.end_offset, read_bytes, hosted.topic_id, at_least_one
        )
        return data, max(1, min(read_bytes, available_bytes))

    def take(self, response: FetchResponse) -> tuple[RecordsOf, ...]:
        """Remove and return the records of this answer; called once for each answer."""
        found = [*self.log_source.take(response)]
        if self._noted:
            for topic in response.responses:
                for partition in topic.partitions:
                    noted = self._noted.pop(id(partition), None)
                    if noted is not None:
                        found.append(noted)
        return tuple(found)

    def take_held(self) -> list[tuple[str, int]]:
        """Remove and return the partitions that are to be examined again by the next fetch."""
        held, self._held = self._held, []
        return held

    def _is_held_back(self, hosted: Hosted, reader: Reader) -> bool:
        return reader.replica_id >= 0 and self._quotas.is_held_back(hosted, reader.replica_id)

    def _hosted(self, slot: Slot) -> Hosted | None:
        hosted = self._replicas.get(slot.topic or "", slot.key[1])
        if hosted is None or (slot.topic_id != hosted.topic_id and slot.topic_id != ZERO_UUID):
            return None
        return hosted

    def _is_recreated(self, slot: Slot) -> bool:
        """Return whether this broker has the partition of a later topic of that name."""
        return self._replicas.get(slot.topic or "", slot.index) is not None

    def _exists(self, slot: Slot) -> bool:
        """Return whether the metadata has the partition, here or elsewhere."""
        image, topic_id = self._view.image, slot.topic_id
        if topic_id == ZERO_UUID:
            topic_id = image.topic_names().get(slot.topic or "", ZERO_UUID)
        return image.partition(topic_id, slot.index) is not None

    def _preferred(
        self, hosted: Hosted, slot: Slot, reader: Reader, verdict: FetchVerdict | ErrorCode
    ) -> int:
        """The follower that a consumer is to read from; THE_LEADER for none.

        As in Kafka it is looked for first: a follower may still have what is below the leader's log start.
        """
        if reader.is_follower or not reader.rack:
            return THE_LEADER
        if not isinstance(verdict, FetchVerdict) and verdict is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return THE_LEADER
        assert hosted.partition is not None
        return preferred_replica(hosted.partition, slot.fetch_offset, reader.rack, self._rack_of)

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._view.image.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.rack

    def _judge(self, hosted: Hosted, slot: Slot, reader: Reader) -> FetchVerdict | ErrorCode:
        partition = hosted.partition
        assert partition is not None
        if reader.replica_id >= 0:
            isolation, follower_id, only_leader = Isolation.LOG_END, reader.replica_id, True
        else:
            committed = reader.isolation_level == READ_COMMITTED
            isolation = Isolation.LAST_STABLE if committed else Isolation.HIGH_WATERMARK
            version = reader.identity.version if isinstance(reader.identity, Identity) else 0
            follower_id, only_leader = None, version < FIRST_VERSION_OF_FOLLOWERS
        verdict = judge_fetch(
            partition,
            slot.fetch_offset,
            isolation,
            current_leader_epoch=slot.current_leader_epoch,
            last_fetched_epoch=slot.last_fetched_epoch,
            follower_id=follower_id,
            only_leader=only_leader,
        )
        is_served = type(verdict) is FetchVerdict and verdict.diverging is None
        if is_served and is_of_former_epoch(partition, reader.replica_id, reader.broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return verdict
