"""S20: the answers of a fetch session add up to the answer of a full fetch (KIP-227).

A reader sees committed records only, each once and in order, and never a truncation.
"""

from __future__ import annotations

from typing import Any

from kraftd.ground.pace import at_once
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.named_tuple import NamedTuple
from kraftd.redaction.batches import redacted_batches
from kraftd.simulation.checkers.checker import Checker
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, Uuid
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.primitives import Buffer

FIRST_VERSION_WITH_TOPIC_IDS = 13
UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
PartitionKey = tuple[str | Uuid, int]  # by the topic's name, or by its id


class Wanted(NamedTuple):
    """One partition that a reader fetches."""

    topic: str
    topic_id: Uuid
    partition: int

    def key(self, version: int) -> PartitionKey:
        return (self.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else self.topic), self.partition

    def in_request(self, version: int, requested: FetchPartition) -> FetchTopic:
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        return FetchTopic("" if by_id else self.topic, self.topic_id if by_id else bytes(16), [requested])


METADATA = Wanted(METADATA_TOPIC, METADATA_TOPIC_ID, 0)


class Reported(NamedTuple):
    """A reader's knowledge of a partition, beside records."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    has_records: bool = False

    def is_before(self, later: Reported) -> bool:
        """Return whether the high watermark alone has moved since."""
        moved = self.high_watermark < later.high_watermark
        return moved and self._replace(high_watermark=later.high_watermark) == later


def reported_of(partition: PartitionData, *, has_records: bool) -> Reported:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition.error_code in UNKNOWN else partition.error_code
    return Reported(error, partition.high_watermark, partition.log_start_offset, has_records)


def partitions_of(message: FetchResponse, version: int) -> dict[PartitionKey, PartitionData]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    return {
        ((topic.topic_id if by_id else topic.topic), partition.partition_index): partition
        for topic in message.responses
        for partition in topic.partitions
    }


class SessionChecker(Checker):
    """Checks each answer when it is made, and the reader's state after each."""

    def full_fetch(
        self, side: Any, requested: list[FetchTopic], version: int, max_bytes: int
    ) -> dict[PartitionKey, Reported]:
        """The current answer to a fetch of the same positions without a session."""
        sessions = side.node.fetches.sessions
        request = FetchRequest(session_epoch=-1, topics=requested, max_bytes=max_bytes)
        now_ms = side.node.now_ms
        context = at_once(sessions.begin(request, version, now_ms))
        response = at_once(sessions.answer(context, now_ms))
        reads = side.node.source.take(response)
        return {
            key: reported_of(one, has_records=any(read.partition is one for read in reads))
            for key, one in partitions_of(response, version).items()
        }

    def made(self, side: Any, call: Any, message: FetchResponse) -> None:
        """Check an answer to be sent: it is not above the high watermark, and declares no committed records
        truncated.
        """
        process, committed = side.process, self.world.committed
        data = partitions_of(message, call.version).get(METADATA.key(call.version))
        if data is None:
            return
        if data.diverging_epoch.epoch >= 0:
            self.fail("S20", f"{process!r} tells {call!r} of a truncation: {data.diverging_epoch!r}")
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and call.offset >= process.files.log.log_start:
            self.fail("S20", f"{process!r} has lost what {call!r} has read, from {call.offset} on")
        if data.high_watermark > committed.end:
            self.fail(
                "S20", f"{process!r} tells {call!r} {data.high_watermark}, committed is {committed.end}"
            )

    def records(self, call: Any, data: PartitionData) -> tuple[int, int]:
        """The end and epoch of the records in an answer; they must follow those that the reader has."""
        reference, committed = self.world.reference, self.world.committed
        offset, epoch = call.offset, call.last_epoch
        for batch in iter_batches(data.records or b"", verify=False):
            header = batch.header
            if not header.base_offset <= offset < header.next_offset:
                self.fail("S20", f"{call!r} reads {header!r}, is at {offset}")
            if header.next_offset > data.high_watermark:
                self.fail("S20", f"{call!r} reads {header!r}, the high watermark is {data.high_watermark}")
            entry = committed.entry_before(header.next_offset)
            if entry is None or entry.epoch != header.leader_epoch:
                self.fail("S20", f"{call!r} reads {header!r}, committed is {entry}")
            if without_secrets(reference.batches[entry.epoch, entry.base]) != batch.view:
                self.fail("S20", f"{call!r} reads other bytes than those committed: {header!r}")
            offset, epoch = header.next_offset, header.leader_epoch
        return offset, epoch

    def received(self, call: Any, known: dict[PartitionKey, Reported]) -> None:
        """Check that a reader, after an answer, knows what a full fetch would have returned."""
        for key, full in call.full.items():
            reported = known.get(key)
            if reported == full:
                continue
            if call.was_parked and reported is not None and reported.error_code and full.error_code:
                continue  # the id of a topic is resolved by a fetch, not while one is parked
            if reported is not None and reported.has_records and reported.is_before(full):
                continue  # it moved while the records' secrets were blanked: the next answer has it
            self.fail("S20", f"{call!r} leaves {reported} known of {key}, a full fetch returns {full}")


def without_secrets(data: bytes) -> Buffer:
    """Batches as readers get them."""
    work = redacted_batches(data)
    while True:
        try:
            next(work)
        except StopIteration as end:
            served: Buffer = end.value
            return served
