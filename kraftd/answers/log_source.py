"""The metadata log as the one partition that fetches of clients read; every other partition is elsewhere.

Only committed records are readable, from a leader as from a follower. What a fetch reads is noted, and the
performer of the answer reads it from the disk.
"""

from __future__ import annotations

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.view import ClusterView
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Availability, PartitionStatus, Reader
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from kraftd.named_tuple import NamedTuple
from kraftd.requests.boundary import Boundary
from kraftd.requests.effects import RecordsOf
from kraftd.security.principals import Principal
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Uuid
from kraftd.wire.error_code import ErrorCode

METADATA_KEY = (METADATA_TOPIC, METADATA_PARTITION)
READ_COMMITTED = 1
MAX_READ_BYTES = 2 << 20  # of one answer, whatever the client's maximum: this many are read without a pause


class Identity(NamedTuple):
    """The reader of a fetch, as the boundary authorizes it, and the version of its requests."""

    key: int
    principal: Principal
    host: str
    client_id: str
    version: int = 0


class LogSource:
    """The partitions of a client node, for its fetch sessions."""

    def __init__(self, view: ClusterView, boundary: Boundary) -> None:
        """`boundary` authorizes an `Identity`."""
        self._view = view
        self._boundary = boundary
        self.leaders_log_end: int | None = None  # while a fetch is handled for which the leader was asked
        self._noted: dict[int, RecordsOf] = {}  # by the identity of the partition's answer

    def topic_name(self, topic_id: Uuid) -> str | None:
        if topic_id == METADATA_TOPIC_ID:
            return METADATA_TOPIC
        topic = self._view.image.topic(topic_id)
        return None if topic is None else topic.name

    def is_past_end(self, request: FetchRequest) -> bool:
        """Return whether a fetch is of an offset that this replica's log does not have, and perhaps the
        leader's has.
        """
        view = self._view
        if view.leader_id == view.node_id:
            return False
        end_offset = view.log_end_offset
        return any(
            one.fetch_offset > end_offset
            for topic in request.topics
            if topic.topic == METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID
            for one in topic.partitions
        )

    def availability(self, slot: Slot, reader: Reader) -> Availability:
        if not may_read(self._boundary, slot, reader, quietly=True):
            return Availability(PartitionStatus.NOT_SERVED)
        if not is_metadata(slot):
            exists = self._exists(slot)
            return Availability(PartitionStatus.FAILED if exists else PartitionStatus.NOT_SERVED)
        view = self._view
        if self._error(slot, reader) or self._diverging(slot) is not None:
            return Availability(PartitionStatus.FAILED)
        end_offset = view.high_watermark
        if slot.fetch_offset >= end_offset:
            return Availability(PartitionStatus.SERVED)
        available_bytes = max(1, view.bytes_between(slot.fetch_offset, end_offset))
        return Availability(PartitionStatus.SERVED, min(available_bytes, max(1, slot.max_bytes)))

    def fetched(self, slot: Slot, reader: Reader, now_ms: int) -> tuple[Availability, int]:
        """Nothing is noted: no broker leads the metadata log."""
        return self.availability(slot, reader), 0

    def read(
        self, slot: Slot, reader: Reader, max_bytes: int, at_least_one: bool
    ) -> tuple[PartitionData, int]:
        view = self._view
        # Records are empty with an error, never null: librdkafka cannot read that.
        data = PartitionData(partition_index=slot.index, high_watermark=-1, records=b"")
        if not may_read(self._boundary, slot, reader, quietly=False):
            data.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return data, 0
        if not is_metadata(slot):
            data.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self._exists(slot):
                data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                data.aborted_transactions = None  # as from a broker that has looked for the replica
            return data, 0
        error = self._error(slot, reader)
        if error:
            data.error_code = error
            data.aborted_transactions = None
            return data, 0
        data.high_watermark = data.last_stable_offset = view.high_watermark
        data.log_start_offset = view.log_start_offset
        data.aborted_transactions = [] if reader.isolation_level == READ_COMMITTED else None
        diverging = self._diverging(slot)
        if diverging is not None:
            data.diverging_epoch = diverging
        elif slot.fetch_offset < view.high_watermark and (max_bytes > 0 or at_least_one):
            read_bytes = max(1, min(max_bytes, MAX_READ_BYTES))
            self._noted[id(data)] = RecordsOf(data, slot.fetch_offset, view.high_watermark, read_bytes)
            return data, max(1, min(read_bytes, view.bytes_between(slot.fetch_offset, view.high_watermark)))
        return data, 0

    def take(self, response: FetchResponse) -> tuple[RecordsOf, ...]:
        """Remove and return the records of this answer, if any; called once for each answer."""
        if not self._noted:
            return ()
        for topic in response.responses:
            for partition in topic.partitions:
                noted = self._noted.pop(id(partition), None)
                if noted is not None:
                    return (noted,)
        return ()

    def _exists(self, slot: Slot) -> bool:
        """Return whether the partition is one of a broker's."""
        image = self._view.image
        topic_id = slot.topic_id
        if topic_id == ZERO_UUID:
            topic_id = image.topic_names().get(slot.topic or "", ZERO_UUID)
        return image.partition(topic_id, slot.index) is not None

    def _error(self, slot: Slot, reader: Reader) -> int:
        view = self._view
        if 0 <= slot.current_leader_epoch < view.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if slot.current_leader_epoch > view.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if reader.is_follower:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # replicas follow at the controller listener
        # A follower may be behind the leader that the client has read from: there, the client waits.
        leads = view.leader_id == view.node_id
        end_offset = view.log_end_offset if leads else self.leaders_log_end
        if slot.fetch_offset < view.log_start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if end_offset is not None and slot.fetch_offset > end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        # As at a broker, the end of an epoch that has not begun cannot be determined.
        is_known = leads or slot.fetch_offset <= view.high_watermark
        if is_known and slot.last_fetched_epoch > max(0, view.last_epoch):
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return 0

    def _diverging(self, slot: Slot) -> EpochEndOffset | None:
        """The offset at which the log diverges from the reader's. Past the high watermark it is unknown
        whether it does: a follower may still have to fetch what the reader has read elsewhere.
        """
        if slot.last_fetched_epoch < 0 or slot.fetch_offset > self._view.high_watermark:
            return None
        end = self._view.end_offset_for_epoch(slot.last_fetched_epoch)
        if end.epoch == slot.last_fetched_epoch and end.offset >= slot.fetch_offset:
            return None
        return EpochEndOffset(end.epoch, end.offset)


def is_metadata(slot: Slot) -> bool:
    return slot.topic == METADATA_TOPIC and slot.index == METADATA_PARTITION


def may_read(boundary: Boundary, slot: Slot, reader: Reader, *, quietly: bool) -> bool:
    """Return whether a reader, with an `Identity`, may fetch a partition; a refusal is logged unless
    `quietly`.
    """
    if not boundary.has_authorizer:
        return True
    identity = reader.identity
    assert isinstance(identity, Identity)
    allows = boundary.allows_quietly if quietly else boundary.allows
    if reader.is_follower:
        return allows(identity, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
    name = slot.topic or ""
    if name != METADATA_TOPIC:
        return allows(identity, AclOperation.READ, AclResourceType.TOPIC, name)
    # An ACL for all topics, or for a prefix, is meant for topics of brokers.
    return boundary.allows_by_name(identity, AclOperation.READ, AclResourceType.TOPIC, name, quietly=quietly)
