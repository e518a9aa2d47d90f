"""Batches of the metadata log as readers get them: secrets blanked, everything else as it is in the log.

A batch with a secret is encoded anew, with the same offsets, count, epoch and timestamps. Others are not
touched. With the C engine the search for secrets costs about as much as reading the bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from functools import cache

from kraftd.messages import registry
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.redaction.configs import public_configs
from kraftd.redaction.records import HARMLESS, redacted
from kraftd.wire.batch import Batch, decompressed, iter_batches, read_batch
from kraftd.wire.engine import C_ENGINE
from kraftd.wire.errors import ProtocolError
from kraftd.wire.primitives import Buffer
from kraftd.wire.record_frame import FRAME_VERSION, VersionedRecord, decode_record, encode_record
from kraftd.wire.rewriting import RecordPlace, Rewriting, places_of

SLICE_RECORDS = 100  # examined in one slice, in 1 to 3 ms
BATCH_COST = 2  # of a batch, in records
Suspects = Iterable[tuple[int, list[int] | None]]

# Whether a type of records may hold secrets, as in _engine.c.
_SECRETIVE, _HARMLESS, _CONFIG = range(3)


class _Pace:
    """Counts what a slice has examined."""

    def __init__(self) -> None:
        self._spent = 0

    def is_over(self, records: int) -> bool:
        """Return whether the slice ends with these records."""
        self._spent += records
        if self._spent < SLICE_RECORDS:
            return False
        self._spent = 0
        return True


def redacted_batches(data: Buffer) -> Generator[None, None, Buffer]:
    """Whole batches as readers get them; the same object if they hold no secret. Yields between slices.

    Raises CorruptBatch.
    """
    view, pace = memoryview(data), _Pace()
    parts: list[Buffer] = []
    kept = 0
    for position, places in _find_suspects(data):
        batch = read_batch(view, position, verify=False)
        changed = yield from _redact(batch, places, pace)
        if changed is not None:
            parts += (view[kept:position], changed)
            kept = position + batch.header.size_bytes
    if not parts:
        return data
    parts.append(view[kept:])
    return b"".join(parts)


def _find_suspects(data: Buffer) -> Suspects:
    """The batches that may hold secrets, with the places of the records that may; None if any of them may."""
    if C_ENGINE is not None:
        return C_ENGINE.suspect_records(data, _kinds(), _harmless_configs())
    return (
        (batch.position, None) for batch in iter_batches(data, verify=False) if not batch.header.is_control
    )


def _redact(batch: Batch, suspects: list[int] | None, pace: _Pace) -> Generator[None, None, bytes | None]:
    """The batch without its secrets; None if it has none."""
    if pace.is_over(BATCH_COST):
        yield
    plain = decompressed(batch)
    rewriting = Rewriting(plain)
    for place in places_of(plain) if suspects is None else _in_sixes(suspects):
        value = redacted_value(plain.view[place[3] : place[4]])
        if value is not None:
            rewriting.replace(place, value)
        if pace.is_over(1):
            yield
    return rewriting.finish()


def _in_sixes(numbers: list[int]) -> Iterator[RecordPlace]:
    each = iter(numbers)
    return zip(each, each, each, each, each, each, strict=True)


def redacted_value(value: memoryview) -> bytes | None:
    """The value of a record without its secrets; None if it has none. A value that cannot be decoded becomes
    a NoOpRecord.
    """
    if not value or (len(value) > 2 and value[0] == FRAME_VERSION and _kinds()[value[1]] == _HARMLESS):
        return None
    try:
        message, version = decode_record(value)
    except ProtocolError:
        return _nothing()
    shown = redacted(message)
    if shown is message:
        return None
    return encode_record(VersionedRecord(shown, version)) if type(shown) is type(message) else _nothing()


@cache
def _kinds() -> bytes:
    """Whether the type of records at each key may hold secrets."""
    kinds = bytearray(256)
    for key, (_, name, *_versions) in registry.METADATA_RECORDS.items():
        kinds[key] = _HARMLESS if name in HARMLESS else _CONFIG if name == "ConfigRecord" else _SECRETIVE
    return bytes(kinds)


@cache
def _harmless_configs() -> frozenset[bytes]:
    """`public_configs` as the engine looks them up: the type of the resource in a byte, then the key."""
    return frozenset(bytes((kind,)) + name.encode() for kind, name in public_configs())


@cache
def _nothing() -> bytes:
    return encode_record(VersionedRecord(NoOpRecord(), 0))
