"""Compaction of batches: the newest offset of each key, and a batch with some of its records only.

As Kafka's cleaner writes them (KIP-534): a batch keeps its first and last offset, its sequence and its
producer whatever records go. The first cleaning that meets a tombstone, or the marker of a transaction
without records, gives the batch a delete horizon: the time from which on they may go. It takes the place of
the base timestamp.
"""

from __future__ import annotations

from struct import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.wire.batch import HEADER_BYTES, MAGIC, Batch, BatchHeader, CorruptBatch
from kraftd.wire.compression import compress
from kraftd.wire.errors import DamagedRecords
from kraftd.wire.records import ENGINE, plain_view

SLOT_BYTES = 24  # as in Kafka's table, so that equal settings reach equally far
SECRET_BYTES = 16
_AFTER_CRC = Struct(">hiqqqhii")
_BEFORE_CRC = Struct(">qiibI")
_CRC_END, _LENGTH_END = 21, 12
_CODEC, _HAS_HORIZON = 7, 64
_NO_TIMESTAMP = -1


class Kept(NamedTuple):
    """The records of a batch that stay: a byte for each record, how many are not 0, whether one of them is a
    tombstone.
    """

    marks: bytes
    record_count: int
    has_tombstones: bool


class KeyOffsets:
    """The newest offset of each key, up to most_keys. Noted are the batches up to latest_offset.

    secret: SECRET_BYTES random bytes, with which keys are hashed. A table of fewer slots than keys ends the
    noting, too.
    """

    def __init__(self, most_keys: int, slots: int, secret: bytes) -> None:
        self.latest_offset = -1
        self.count = 0
        self.most_keys = most_keys
        self._slots = bytearray(slots * SLOT_BYTES)
        self._secret = secret

    def __repr__(self) -> str:
        return f"<KeyOffsets {self.count} of {self.most_keys} keys, to offset {self.latest_offset}>"

    def note(self, batch: Batch, start_offset: int) -> bool:
        """Note the keys of a batch from start_offset on. Returns False once they do not fit. Raises
        CorruptBatch.
        """
        try:
            added, last_offset, fits = ENGINE.note_keys(
                self._slots, self._secret, plain_view(batch), start_offset, self.most_keys - self.count
            )
        except DamagedRecords as error:
            raise CorruptBatch(str(error), batch.position) from None
        self.count += added
        self.latest_offset = max(self.latest_offset, last_offset)
        return fits

    def kept(self, batch: Batch, *, drops_tombstones: bool) -> Kept:
        """Which records of a data batch stay: those past latest_offset, and the newest of each key. Raises
        CorruptBatch.
        """
        try:
            return Kept(
                *ENGINE.newest_records(
                    self._slots, self._secret, plain_view(batch), self.latest_offset, drops_tombstones
                )
            )
        except DamagedRecords as error:
            raise CorruptBatch(str(error), batch.position) from None


def delete_horizon_ms(header: BatchHeader) -> int | None:
    """The time from which on a batch's tombstones, or its marker, may go; None if it was not set yet."""
    return header.base_timestamp_ms if header.attributes & _HAS_HORIZON else None


def with_records(batch: Batch, marks: bytes, horizon_ms: int | None) -> bytes:
    """The batch with the marked records only, and a delete horizon if there is one. Raises CorruptBatch."""
    header = batch.header
    base_ms = _NO_TIMESTAMP if horizon_ms is None else horizon_ms
    try:
        written = ENGINE.keep_records(plain_view(batch), marks, base_ms)
    except DamagedRecords as error:
        raise CorruptBatch(str(error), batch.position) from None
    if written is None:
        raise CorruptBatch("a record has a timestamp below -1", batch.position)
    body, base_ms, max_ms = written
    codec = header.attributes & _CODEC
    attributes = header.attributes & ~_HAS_HORIZON | (_HAS_HORIZON if horizon_ms is not None else 0)
    return _batch(
        header, attributes, base_ms, max_ms, sum(map(bool, marks)), compress(codec, body) if codec else body
    )


def without_records(header: BatchHeader) -> bytes:
    """The header alone: what a producer's sequence and the end of the cleaned part need."""
    attributes = header.attributes & ~_HAS_HORIZON & ~_CODEC
    return _batch(header, attributes, _NO_TIMESTAMP, header.max_timestamp_ms, 0, b"")


def _batch(header: BatchHeader, attributes: int, base_ms: int, max_ms: int, count: int, body: bytes) -> bytes:
    covered = _AFTER_CRC.pack(
        attributes, header.last_offset_delta, base_ms, max_ms, header.producer_id, header.producer_epoch,
        header.base_sequence, count,
    ) + body  # fmt: skip
    length = HEADER_BYTES - _LENGTH_END + len(body)
    start = _BEFORE_CRC.pack(header.base_offset, length, header.leader_epoch, MAGIC, ENGINE.crc32c(covered))
    return start + covered
