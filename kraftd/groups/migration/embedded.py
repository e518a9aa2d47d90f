"""What classic consumers say within JoinGroup and SyncGroup: their subscription and their assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import error as StructError
from struct import pack, unpack_from

from kraftd.groups.call import Metadata
from kraftd.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kraftd.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftd.wire.codec import decode_prefix, encode_bytes
from kraftd.wire.errors import ProtocolError

LATEST_VERSION = 3


class MalformedBytes(ValueError):
    """Bytes that are no message of the consumers' protocol."""


def subscription_of(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription. Raises MalformedBytes."""
    try:
        return decode_prefix(ConsumerProtocolSubscription, version_of(data), data, 2)[0]
    except ProtocolError as problem:
        raise MalformedBytes(str(problem)) from None


def assignment_of(data: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment. Raises MalformedBytes."""
    try:
        return decode_prefix(ConsumerProtocolAssignment, version_of(data), data, 2)[0]
    except ProtocolError as problem:
        raise MalformedBytes(str(problem)) from None


def version_of(data: bytes) -> int:
    """The version of a message, or the latest known one before it. Raises MalformedBytes."""
    try:
        version: int = unpack_from(">h", data)[0]
    except StructError:
        raise MalformedBytes("Buffer underflow while parsing consumer protocol's header") from None
    if version < 0:
        raise MalformedBytes(f"Unsupported assignment version: {version}")
    return min(version, LATEST_VERSION)


def encoded_assignment(partitions: Mapping[bytes, Iterable[int]], metadata: Metadata, version: int) -> bytes:
    """An assignment as SyncGroup has it; topics that are gone are left out."""
    names = {topic_id: metadata.topic_name(topic_id) for topic_id in partitions}
    rows = [
        TopicPartition(name, tuple(partitions[topic_id]))
        for topic_id, name in names.items()
        if name is not None
    ]
    return pack(">h", version) + encode_bytes(ConsumerProtocolAssignment(rows), version)
