"""The differences in answers to clients that docs/divergence.md has, and that random requests come across."""

from __future__ import annotations

from typing import Any

from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.messages.produce_request import ProduceRequest
from kraftd.partition.reading import EARLIEST_TIMESTAMP, MAX_TIMESTAMP
from kraftd.types import uuid_text
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.kafka.broker.pair import Side

OF_MANY_SEGMENTS = ("rolls", uuid_text(b"rolls".ljust(11) + bytes(5)))  # by name, and by the shared id
READ = ("records", "abortedTransactions")
FULL_BYTES = 1 << 20  # limits below it may leave a partition no room
_OF_REQUEST = {ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR}
_OF_RECORDS = {ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
_OTHER_FAULTS = {
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def is_on_purpose(kraftd_side: Side, request: Message, kafka: Any, kraftd: Any) -> bool:
    """Return whether two views of answers differ only as they should."""
    if isinstance(kafka, str) or isinstance(kraftd, str):
        return False
    if isinstance(request, ProduceRequest):
        return _is_refused_whole(kafka, kraftd)
    if isinstance(request, FetchRequest):
        return _reads_on(request, kafka, kraftd)
    if isinstance(request, ListOffsetsRequest):
        return _is_below_log_start(kraftd_side, request, kafka, kraftd)
    return False


def _is_refused_whole(kafka: Any, kraftd: Any) -> bool:
    """Kafka looks for some faults of records before it looks at anything else, and may refuse the whole."""
    theirs, ours = (
        {row["errorCode"] for topic in one["responses"] for row in topic["partitionResponses"]}
        for one in (kafka, kraftd)
    )
    return 0 not in ours and (
        theirs <= _OF_REQUEST or (ours <= _OTHER_FAULTS and theirs <= _OF_RECORDS | ours)
    )


def _reads_on(request: FetchRequest, kafka: Any, kraftd: Any) -> bool:
    """Kafka reads to the end of a segment. The room that a partition leaves to the next is estimated."""
    theirs, ours = (
        {(topic, row["partitionIndex"]): row for topic, rows in one["responses"] for row in rows}
        for one in (kafka, kraftd)
    )
    if {**kafka, "responses": None} != {**kraftd, "responses": None} or theirs.keys() != ours.keys():
        return False
    for (topic, index), row in theirs.items():
        other = ours[topic, index]
        if topic in OF_MANY_SEGMENTS and row["records"]:
            other = {**other, "records": other["records"][: len(row["records"])]}
        if request.max_bytes < FULL_BYTES and not (row["records"] and other["records"]):
            other = {**other, **{key: row[key] for key in READ}}
        if row != other:
            return False
    return True


def _is_below_log_start(side: Side, request: ListOffsetsRequest, kafka: Any, kraftd: Any) -> bool:
    """Kafka finds the largest timestamp below the log start, too, and by another one nothing while it has
    not deleted the segments there.
    """
    asked = {
        (topic.name, one.partition_index): one.timestamp
        for topic in request.topics
        for one in topic.partitions
    }
    theirs, ours = (
        {
            (topic["name"], row["partitionIndex"]): row
            for topic in one["topics"]
            for row in topic["partitions"]
        }
        for one in (kafka, kraftd)
    )
    different = [key for key in theirs if theirs[key] != ours.get(key)]

    def is_below(key: tuple[str, int]) -> bool:
        offset = theirs[key]["offset"]
        if asked[key] == MAX_TIMESTAMP:
            return bool(0 <= offset < _log_start(side, *key))
        return asked[key] >= 0 and not theirs[key]["errorCode"] and offset < 0 < _log_start(side, *key)

    return theirs.keys() == ours.keys() and all(map(is_below, different))


def _log_start(side: Side, topic: str, index: int) -> int:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(index, -1, EARLIEST_TIMESTAMP)])
    answer: Any = side.ask(ListOffsetsRequest(-1, 0, [asked]), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset
