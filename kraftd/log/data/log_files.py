"""The files of one log: what makes, cuts and retires segments, and the small files beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kraftd.log.data.resources import Deletion, LogResources
from kraftd.log.data.segment import DataSegment
from kraftd.log.data.transaction_index import (
    ENTRY_BYTES,
    AbortedTransaction,
    count_ended_before,
    encode_aborted,
    iter_aborted,
)
from kraftd.log.disk import write_whole
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import decode_epochs
from kraftd.log.errors import DiskFull
from kraftd.log.partition_metadata import FILE_NAME as METADATA_FILE_NAME
from kraftd.log.partition_metadata import encode_topic_id
from kraftd.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_of_name,
    scan,
    segment_name,
)
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid
from kraftd.wire.producer_snapshot import SnapshotEntry, encode_producers

_SCAN_BYTES = 16 << 10


class LogFiles(NamedTuple):
    """Made when it is needed. Every method may raise StorageError; nothing is durable before a flush."""

    resources: LogResources
    directory: str

    # --- segments ---

    def create(self, segment: DataSegment) -> None:
        """Make the files of a new segment. What a crash or a truncation left under their names goes first."""
        disk, files = self.resources.disk, self.resources.files
        for suffix in SUFFIXES:
            path = segment.path(self.directory, suffix)
            if suffix != PRODUCER_SNAPSHOT_SUFFIX:
                files.forget(path)
                if disk.exists(path):
                    disk.remove(path)
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            files.get(segment.path(self.directory, suffix), create=True)
        segment.set_entries(0, 0, (-1, segment.base_offset))

    def retire(self, segments: Sequence[DataSegment], due_ms: int) -> None:
        """Take away the names of segments' files, in this order; the files themselves go later."""
        self._retire([each.path(self.directory, suffix) for each in segments for suffix in SUFFIXES], due_ms)

    def _retire(self, paths: Sequence[str], due_ms: int) -> None:
        disk = self.resources.disk
        deleted = []
        for path in paths:
            if disk.exists(path):
                self.resources.files.forget(path)
                disk.rename(path, path + DELETED_SUFFIX)
                deleted.append(path + DELETED_SUFFIX)
        if deleted:
            self.resources.deletions.append(Deletion(due_ms, deleted))

    def swap_in(self, cleaned: DataSegment, replaced: Sequence[DataSegment], due_ms: int) -> None:
        """Let a segment that was written as `.cleaned` take the place of others. A crash on the way leaves
        names with which the next opening goes on, or begins again.

        Raises FileNotFoundError: the cleaned log has gone, and nothing was replaced.
        """
        disk, directory = self.resources.disk, self.directory
        paths = [cleaned.path(directory, suffix) for suffix in SUFFIXES if suffix != PRODUCER_SNAPSHOT_SUFFIX]
        log = cleaned.path(directory)  # if it has vanished, the segments that it replaces stay
        written = [path for path in paths if path == log or disk.exists(path + CLEANED_SUFFIX)]
        for path in written:
            disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        first, *others = replaced
        self._retire(paths, due_ms)
        assert first.base_offset == cleaned.base_offset
        self.retire(others, due_ms)
        for path in written:
            disk.rename(path + SWAP_SUFFIX, path)

    def place_of(self, segment: DataSegment, offset: int) -> tuple[int, int]:
        """(base offset, position) of the first batch in a segment that ends at or past offset; without one,
        offset and the end of the segment.

        Raises CorruptBatch.
        """
        opened = self.resources.files.get
        start = segment.place(offset, self.directory, opened)[1]
        file, end = opened(segment.path(self.directory)), segment.end_position
        for header, _, position in scan(file, start, end, verify=False, chunk_bytes=_SCAN_BYTES):
            if header.last_offset >= offset:
                return header.base_offset, position
        return offset, end

    # --- aborted transactions ---

    def append_aborted(self, segment: DataSegment, aborted: Sequence[AbortedTransaction]) -> None:
        """Add entries to a segment's transaction index, which is made with the first.

        Raises DiskFull: nothing of them stays.
        """
        if not aborted:
            return
        segment.has_aborted = True
        path = segment.path(self.directory, TRANSACTION_INDEX_SUFFIX)
        file = self.resources.files.get(path, create=True)
        size_bytes = file.size_bytes()
        try:
            file.write(size_bytes, b"".join(map(encode_aborted, aborted)))
        except DiskFull:
            file.truncate(size_bytes)
            raise

    def has_aborted(self, segment: DataSegment) -> bool:
        """Return whether a segment has a transaction index. Asked by the thread that appends, alone."""
        if segment.has_aborted:
            path = segment.path(self.directory, TRANSACTION_INDEX_SUFFIX)
            segment.has_aborted = self.resources.disk.exists(path)
        return segment.has_aborted

    def cut_aborted(self, segment: DataSegment, end_offset: int) -> None:
        """Remove the transactions that end at or past end_offset."""
        path = segment.path(self.directory, TRANSACTION_INDEX_SUFFIX)
        try:
            data = self.resources.disk.read_bytes(path)
        except FileNotFoundError:
            return
        kept_bytes = count_ended_before(data, end_offset) * ENTRY_BYTES
        if kept_bytes < len(data):
            self.resources.files.get(path).truncate(kept_bytes)

    def aborted(
        self, segments: Sequence[DataSegment], start_offset: int, end_offset: int
    ) -> list[AbortedTransaction]:
        """The aborted transactions with records from start_offset to before end_offset, by their ends.

        segments begin with that of start_offset. Raises CorruptStorage.
        """
        found = []
        for segment in segments:
            for aborted in self._aborted_of(segment, start_offset):
                if aborted.first_offset < end_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= end_offset:
                    return found
        return found

    def _aborted_of(self, segment: DataSegment, start_offset: int) -> Iterator[AbortedTransaction]:
        """The transactions of a segment that end at or past start_offset."""
        path = segment.path(self.directory, TRANSACTION_INDEX_SUFFIX)
        try:
            data = self.resources.disk.read_bytes(path)
        except FileNotFoundError:
            return iter(())
        return iter_aborted(data, path, segment.base_offset, count_ended_before(data, start_offset))

    # --- files of the whole log ---

    def snapshot_offsets(self) -> list[int]:
        """The offsets of the snapshots of producers, ascending."""
        names = self.resources.disk.list_names(self.directory)
        found = (offset_of_name(name) for name in names if name.endswith(PRODUCER_SNAPSHOT_SUFFIX))
        return sorted(offset for offset in found if offset is not None)

    def remove_snapshots_behind(self, offset: int) -> None:
        """Remove the snapshots of producers that are of records which were truncated."""
        for one in self.snapshot_offsets():
            if one > offset:
                self.resources.disk.remove(self.snapshot_path(one))

    def snapshot_path(self, offset: int) -> str:
        return f"{self.directory}/{segment_name(offset, PRODUCER_SNAPSHOT_SUFFIX)}"

    def write_snapshot(self, offset: int, entries: Iterable[SnapshotEntry]) -> None:
        """Write the producers as they are before offset."""
        path = self.snapshot_path(offset)
        self.resources.disk.remove(path)
        file = self.resources.disk.open(path, create=True)
        try:
            file.write(0, encode_producers(entries))
        finally:
            file.close()

    def write_topic_id(self, topic_id: Uuid) -> None:
        """Write partition.metadata, as a whole."""
        path = f"{self.directory}/{METADATA_FILE_NAME}"
        write_whole(self.resources.disk, path, encode_topic_id(topic_id))

    def read_epochs(self) -> list[tuple[int, int]] | None:
        """The entries of leader-epoch-checkpoint; None if it cannot be read. Without the file there are none,
        nor in an empty one, which Apache Kafka makes with the log.
        """
        try:
            data = self.resources.disk.read_bytes(f"{self.directory}/{EPOCHS_FILE_NAME}")
        except FileNotFoundError:
            return []
        return decode_epochs(data) if data else []
