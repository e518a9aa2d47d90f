"""Recovers a segment after an unclean stop: checks every batch, cuts a torn end, makes the indexes anew.

What is below the recovery point was flushed: damage there is no torn write, and it stays as it is. What is
past it may be torn; it is cut as Apache Kafka cuts it, and the report says what went. A batch that the end of
the file cuts off goes in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from kraftd.log.data.segment import DataSegment, Opener
from kraftd.log.data.transaction_index import AbortedTransaction, encode_aborted
from kraftd.log.disk import Disk, File
from kraftd.log.epochs import EpochCache
from kraftd.log.errors import CorruptStorage, DiskFull
from kraftd.log.segment import (
    MAX_RELATIVE_OFFSET,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    SegmentIndex,
    find_valid_batch,
)
from kraftd.wire.batch import HEADER_BYTES, Batch, CorruptBatch, read_batch
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import scan_batches

SLICE_BATCHES = 256
SLICE_BYTES = 1 << 20

_REMEDY = (
    "Restore the file from a copy or, with other replicas, move the partition's directory aside and let this "
    "broker fetch it again"
)


_SPLIT = (
    "Let Apache Kafka open the directory once: it splits the segment. Or, with other replicas, move the "
    "partition's directory aside and let this broker fetch it again"
)


class ProducerReplay(Protocol):
    """The state of a partition's producers, as an opening drives it."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to remember."""

    def load(self, entries: Sequence[SnapshotEntry], offset: int) -> None:
        """Begin with a snapshot as of an offset: without entries if there is none."""

    def replay(self, batch: Batch) -> AbortedTransaction | None:
        """Account for a batch; returns the transaction that its marker aborts."""

    def entries(self) -> Iterable[SnapshotEntry]:
        """The state as entries of a snapshot."""

    def expire(self) -> None:
        """Forget producers that have been idle for too long."""


class SegmentRecovery:
    """Recovers the segments of one log, oldest first. end_offset and epoch are those of the last sound batch.

    recovery_point is None after a clean stop: everything was flushed. drop_behind removes the segments behind
    one that is about to be cut, for good: if a loss of power brought them back, there would be a hole before
    them. cut: whether the segment recovered last was cut.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        opened: Opener,
        recovery_point: int | None,
        epochs: EpochCache,
        replay: Callable[[Batch], AbortedTransaction | None] | None,
        note: Callable[[str], None],
        interval_bytes: int,
        drop_behind: Callable[[DataSegment, int], None],
    ) -> None:
        self.end_offset = 0
        self.epoch = -1
        self.cut = False
        self._disk = disk
        self._directory = directory
        self._opened = opened
        self._recovery_point = recovery_point
        self._epochs = epochs
        self._replay = replay
        self._note = note
        self._interval_bytes = interval_bytes
        self._drop_behind = drop_behind

    def __repr__(self) -> str:
        return f"<SegmentRecovery of {self._directory} to {self.end_offset}>"

    def recover(self, segment: DataSegment) -> Iterator[None]:
        """Recover a segment, in slices. Raises CorruptStorage for flushed records that cannot be read, with
        nothing changed; StorageError.
        """
        index = SegmentIndex(segment.base_offset, self._interval_bytes)
        aborted: list[AbortedTransaction] = []
        position, size_bytes = 0, segment.end_position
        self.end_offset = max(self.end_offset, segment.base_offset)
        file = self._opened(segment.path(self._directory))
        while position < size_bytes:
            try:
                for batch in self._sound_batches(segment, file, position, size_bytes):
                    if batch is None:
                        yield
                        continue
                    header = batch.header
                    index.note(header.last_offset, header.max_timestamp_ms, batch.position)
                    self._assign(header.leader_epoch, header.base_offset)
                    if self._replay is not None and header.producer_id >= 0:
                        ended = self._replay(batch)
                        if ended is not None:
                            aborted.append(ended)
                    position = batch.position + header.size_bytes
                    self.end_offset, self.epoch = header.next_offset, header.leader_epoch
                break
            except CorruptBatch as error:
                if error.truncated or self._may_be_unflushed(file, error.position):
                    self._cut(segment, file, error, size_bytes)
                    break
                position = self._behind(segment, file, error, size_bytes)
            file = self._opened(segment.path(self._directory))
        self._write_indexes(segment, index, aborted)

    def _assign(self, epoch: int, offset: int) -> None:
        """Let the epochs have a batch's. Those before the file's first are there after a loss of power that
        undid a truncation.
        """
        latest = self._epochs.latest
        if epoch >= 0 and (latest is None or epoch > latest or self._epochs.epoch_of(offset) is None):
            self._epochs.assign(epoch, offset)

    def _sound_batches(
        self, segment: DataSegment, file: File, start: int, end: int
    ) -> Iterator[Batch | None]:
        """The batches from a position on, verified; None after each slice. Raises CorruptBatch."""
        expected, epoch = self.end_offset, self.epoch
        for piece in _verified(file, start, end):
            for batch in piece:
                header = batch.header
                if header.base_offset < expected:
                    reason = f"offset {header.base_offset} follows a log end of {expected}"
                elif 0 <= header.leader_epoch < epoch:
                    reason = f"epoch {header.leader_epoch} follows epoch {epoch}: truncated once, and back"
                elif header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                    # A whole batch is no torn write. Releases of Kafka before 1.1 have written such segments.
                    reason, path = f"offset {header.last_offset} is too far", segment.path(self._directory)
                    raise CorruptStorage(path, batch.position, header.base_offset, reason, _SPLIT)
                else:
                    expected, epoch = header.next_offset, header.leader_epoch
                    yield batch
                    continue
                raise CorruptBatch(reason, batch.position)
            yield None

    def _may_be_unflushed(self, file: File, position: int) -> bool:
        """Return whether damaged bytes are past the recovery point, by what is before or what they say."""
        claimed = int.from_bytes(file.read(position, 8), "big", signed=True)
        return self._recovery_point is not None and max(self.end_offset, claimed) >= self._recovery_point

    def _cut(self, segment: DataSegment, file: File, error: CorruptBatch, size_bytes: int) -> None:
        self._drop_behind(segment, self.end_offset)
        file.truncate(error.position)
        segment.end_position = error.position
        self.cut = True
        flushed = ""
        if self._recovery_point is None:
            flushed = ". Records that were flushed before the clean stop are gone"
        elif (lost := self._recovery_point - self.end_offset) > 0:
            flushed = f". Up to {lost} records that were flushed are gone"
        self._note(
            f"{segment.path(self._directory)} was cut at byte {error.position} (offset {self.end_offset}): "
            f"the {size_bytes - error.position} bytes behind it are no whole batches "
            f"({error.reason}){flushed}"
        )

    def _behind(self, segment: DataSegment, file: File, error: CorruptBatch, size_bytes: int) -> int:
        """The position of the batch after damage to flushed records, which stay as they are."""
        path = segment.path(self._directory)
        found = find_valid_batch(file, error.position + 1, size_bytes, self.end_offset)
        if found is None:
            raise CorruptStorage(path, error.position, self.end_offset, error.reason, _REMEDY) from None
        self._note(
            f"{path}, byte {error.position} (offset {self.end_offset}): {error.reason}. The records up to "
            f"byte {found} were flushed and cannot be read any more; all others can. {_REMEDY}"
        )
        return found

    def _write_indexes(
        self, segment: DataSegment, index: SegmentIndex, aborted: Sequence[AbortedTransaction]
    ) -> None:
        index.note_max_time()
        entries = index.counts
        contents = index.entries_bytes()
        for suffix, content in zip((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX), contents, strict=True):
            self._replace(segment.path(self._directory, suffix), content)
        segment.set_entries(*entries, index.max_time)
        path = segment.path(self._directory, TRANSACTION_INDEX_SUFFIX)
        if self._replay is not None and (aborted or self._disk.exists(path)):
            self._replace(path, b"".join(map(encode_aborted, aborted)))

    def _replace(self, path: str, content: bytes) -> None:
        file = self._disk.open(path, create=True)
        try:
            file.truncate(0)
            if content:
                file.write(0, content)
        except DiskFull:
            self._disk.remove(path)  # a missing index is made anew, whatever the stop before was
            raise
        finally:
            file.close()


def _verified(file: File, position: int, end: int) -> Iterator[list[Batch]]:
    """The batches of a file from position to end, a few at a time. Raises CorruptBatch."""
    wanted = SLICE_BYTES
    while position < end:
        data = file.read(position, min(wanted, end - position))
        at, wanted = 0, SLICE_BYTES
        while at < len(data):
            found, after, reason = scan_batches(data, at, most=SLICE_BATCHES)
            yield [batch._replace(position=position + batch.position) for batch in found]
            at = after
            if reason == "truncated" and position + len(data) < end and len(data) - at >= HEADER_BYTES:
                wanted = max(wanted, int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + 12)
                break
            if reason == "truncated" and position + len(data) < end and at:
                break
            if reason is not None:
                raise _corrupt(data, at, position, reason)
        position += at
        if position + wanted > end and wanted > SLICE_BYTES:
            size = f"{wanted} bytes long, {end - position} are left"
            raise CorruptBatch(size, position, truncated=True)


def _corrupt(data: bytes, at: int, position: int, reason: str) -> CorruptBatch:
    """What is wrong with the batch at a place in data, which begin at position."""
    try:
        read_batch(data, at)
    except CorruptBatch as error:
        return CorruptBatch(error.reason, position + at, truncated=error.truncated)
    return CorruptBatch(reason, position + at)
