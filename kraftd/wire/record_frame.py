"""The frame of a metadata record, which is the value of a record in the metadata log.

Frame version (always 1), the record's key, the version of its body, each an unsigned varint; then the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from kraftd.named_tuple import NamedTuple
from kraftd.wire.api import metadata_record_class
from kraftd.wire.batch import Batch, decompressed, values
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.engine import C_ENGINE
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.table import table_of

FRAME_VERSION = 1
RECORDS_DECODED_AHEAD = 256


class VersionedRecord(NamedTuple):
    """A metadata record and its version on the wire."""

    message: Message
    version: int


def python_encode_record(record: VersionedRecord) -> bytes:
    """The record as the value of a log record. Raises EncodeError when the version cannot carry it."""
    message, version = record
    return _prefix(type(message), version) + encode_bytes(message, version)


# Called for every record, so no function wraps the engine's.
encode_record: Callable[[VersionedRecord], bytes] = (
    python_encode_record if C_ENGINE is None else C_ENGINE.encode_record
)


def encode_records(records: Sequence[VersionedRecord]) -> list[bytes]:
    """The records as values of log records, for one batch. Raises EncodeError as ``encode_record`` does."""
    if C_ENGINE is not None:
        return C_ENGINE.encode_records(records)
    return [python_encode_record(record) for record in records]


def decode_record(view: bytes | memoryview) -> VersionedRecord:
    """The record in a log record's value. Raises ProtocolError: unknown frame, key
    or version, a malformed body."""
    # All three numbers are below 128 in every record that exists.
    if len(view) < 3:
        raise ProtocolError("metadata record", "", 0, f"{len(view)} bytes are no frame")
    frame_version, key, version = view[0], view[1], view[2]
    if frame_version != FRAME_VERSION:
        raise ProtocolError(
            "metadata record", "", 0, f"frame version {frame_version}, only {FRAME_VERSION} is read"
        )
    found = _CLASSES.get(key)
    if found is None:
        found = _find_type(key)
    cls, first, last = found
    if not first <= version <= last:
        raise ProtocolError(cls.__name__, "", 2, f"version {version}, only {first} to {last} are read")
    return VersionedRecord(decode(cls, version, view, 3), version)


def decode_batch(batch: Batch) -> Iterator[Message]:
    """The messages of a metadata batch in order of offset. Raises what ``decode_runs`` does."""
    for run in decode_runs(batch):
        yield from run


def decode_runs(batch: Batch) -> Iterator[list[Message]]:
    """The messages of a metadata batch in order of offset, some at a time; with the C engine, this is much
    cheaper than one by one.

    Raises CorruptBatch as ``values`` does, ProtocolError as ``decode_record`` does. It decodes few enough
    records ahead that a caller with a time budget may stop in between.
    """
    batch = decompressed(batch)
    number, at, count = 0, 0, batch.header.record_count
    while C_ENGINE is not None and number < count:
        found = C_ENGINE.batch_messages(batch.view, at, number, RECORDS_DECODED_AHEAD)
        if found is None:
            break
        messages, at = found
        yield messages
        number += len(messages)
    if number < count or count == 0:
        rest = values(batch)[number:]
        for first in range(0, len(rest), RECORDS_DECODED_AHEAD):
            yield [decode_record(value).message for value in rest[first : first + RECORDS_DECODED_AHEAD]]


_CLASSES: dict[int, tuple[type[Message], int, int]] = {}


def _find_type(key: int) -> tuple[type[Message], int, int]:
    """Class, first and last version of a record's key. Raises ProtocolError when there is none."""
    try:
        cls = metadata_record_class(key)
    except KeyError:
        raise ProtocolError("metadata record", "", 1, f"no record has key {key}") from None
    first, last = table_of(cls).valid
    _CLASSES[key] = cls, first, last
    return _CLASSES[key]


@lru_cache(maxsize=256)
def _prefix(cls: type[Message], version: int) -> bytes:
    key = table_of(cls).key
    if key is None or table_of(cls).type != "metadata":
        raise TypeError(f"{cls.__name__} is not a metadata record")
    return bytes((FRAME_VERSION, key, version))
