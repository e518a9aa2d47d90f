"""The records of ``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``, and their bytes.

A key is two bytes, the type of the record, and a message of version 0. A value is two bytes, its version, and
a message of that version; without a value the record is a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct as Layout
from struct import error as StructError
from typing import Any, TypeGuard

from msgspec import Struct

from kraftd.messages.group_metadata_key import GroupMetadataKey
from kraftd.messages.group_metadata_value import GroupMetadataValue
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.messages.registry import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS
from kraftd.wire.api import group_record_classes, share_record_classes, transaction_record_classes
from kraftd.wire.codec import decode_prefix, encode_bytes
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.table import table_of

OFFSET_COMMIT = 1
GROUP_METADATA = 2
# The versions in which Kafka writes the values. Only old versions of OffsetCommit give an offset an expiry of
# its own, and only version 1 of the value has it.
GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1

KeyAndValue = tuple[bytes, bytes | None]

_SHORT = Layout(">h")
_SHORTS = [_SHORT.pack(number) for number in range(64)]


class CoordinatorRecord(Struct, frozen=True, gc=False):
    """A record: its key, its value or None for a tombstone, and the version to write the value in.

    content: what the value says, where its writer knows that; it is replayed without reading the value again.
    encoded: the value as it stands in the log, where it was encoded before.
    """

    key: Message
    value: Message | None
    version: int = 0
    content: Any = None
    encoded: bytes | None = None

    def __repr__(self) -> str:
        return f"<CoordinatorRecord {self.key!r} {'tombstone' if self.value is None else repr(self.value)}>"


class UnreadableRecord(ValueError):
    """A record whose key or value cannot be decoded: loading its partition fails."""


class UnknownValueVersion(UnreadableRecord):
    """A record whose value a newer release has written."""


class UnknownRecordType(Exception):
    """A record of a type that this release does not have: loading skips it."""


def encode_record(record: CoordinatorRecord) -> KeyAndValue:
    """Key and value as they stand in the log."""
    key = _SHORTS[_type_of(type(record.key))] + encode_bytes(record.key, 0)
    if record.value is None:
        return key, None
    return key, record.encoded or encode_value(record.value, record.version)


def encode_value(value: Message, version: int = 0) -> bytes:
    """A value as it stands in the log."""
    return _SHORTS[version] + encode_bytes(value, version)


def decode_record(
    key: bytes | memoryview | None, value: bytes | memoryview | None
) -> tuple[int, CoordinatorRecord]:
    """The type and the record of key and value; raises UnknownRecordType or UnreadableRecord.

    As in Kafka, bytes that follow a message are passed over.
    """
    return _decode(key, value, GROUP_RECORDS, group_record_classes)


def decode_transaction_record(
    key: bytes | memoryview | None, value: bytes | memoryview | None
) -> CoordinatorRecord:
    """As `decode_record`, of ``__transaction_state``."""
    return _decode(key, value, TRANSACTION_RECORDS, transaction_record_classes)[1]


def decode_share_record(
    key: bytes | memoryview | None, value: bytes | memoryview | None
) -> CoordinatorRecord:
    """As `decode_record`, of ``__share_group_state``."""
    return _decode(key, value, SHARE_RECORDS, share_record_classes)[1]


def _decode(
    key: bytes | memoryview | None,
    value: bytes | memoryview | None,
    rows: dict[int, tuple[str, str, str, str, int, int]],
    classes: Callable[[int], tuple[type[Message], type[Message]]],
) -> tuple[int, CoordinatorRecord]:
    if key is None:
        raise UnreadableRecord("a record without a key")
    kind = _leading_short(key, "key")
    row = rows.get(kind)
    if row is None:
        raise UnknownRecordType(f"type {kind}")
    key_class, value_class = classes(kind)
    try:
        key_message = decode_prefix(key_class, 0, key, 2)[0]
        if value is None:
            return kind, CoordinatorRecord(key_message, None)
        version = _leading_short(value, "value")
        if not row[4] <= version <= row[5]:
            raise UnknownValueVersion(f"{row[3]} in version {version}, which is unknown")
        return kind, CoordinatorRecord(key_message, decode_prefix(value_class, version, value, 2)[0], version)
    except ProtocolError as problem:
        raise UnreadableRecord(str(problem)) from problem


def decode_offset(key: bytes, value: bytes | None) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    """As `decode_record`, for a key that `is_offset_key`: most records of a log are such ones."""
    try:
        found: OffsetCommitKey = decode_prefix(OffsetCommitKey, 0, key, 2)[0]
        if value is None:
            return found, None
        version = _SHORT.unpack_from(value)[0]
        if 0 <= version <= OFFSET_COMMIT_VERSION:
            return found, decode_prefix(OffsetCommitValue, version, value, 2)[0]
    except (ProtocolError, StructError):
        pass
    decode_record(key, value)
    raise AssertionError("decode_record tells what is wrong")


def is_offset_key(key: bytes | None) -> TypeGuard[bytes]:
    """Return whether a record's key is that of a committed offset."""
    return key is not None and key[:2] == _SHORTS[OFFSET_COMMIT]


def offset_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue | None
) -> CoordinatorRecord:
    """A committed offset, or the tombstone that removes it."""
    key = OffsetCommitKey(group_id, topic, partition)
    if value is None:
        return CoordinatorRecord(key, None)
    has_expiry = value.expire_timestamp != -1
    return CoordinatorRecord(
        key, value, OFFSET_COMMIT_VERSION_WITH_EXPIRY if has_expiry else OFFSET_COMMIT_VERSION
    )


def group_record(group_id: str, value: GroupMetadataValue | None) -> CoordinatorRecord:
    """A classic group with its members, or the tombstone that removes it."""
    return CoordinatorRecord(
        GroupMetadataKey(group_id), value, GROUP_METADATA_VERSION if value is not None else 0
    )


def _leading_short(data: bytes | memoryview, name: str) -> int:
    try:
        number: int = _SHORT.unpack_from(data)[0]
    except StructError:
        raise UnreadableRecord(f"a {name} of {len(data)} bytes") from None
    return number


@cache
def _type_of(key: type[Message]) -> int:
    number = table_of(key).key
    assert number is not None
    return number
