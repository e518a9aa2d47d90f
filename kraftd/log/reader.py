"""Reads the batches of a log that another process writes; recovers and changes nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage
from kraftd.log.segment import LOG_SUFFIX, offset_of_name, scan, segment_name
from kraftd.wire.batch import Batch, CorruptBatch

_REMEDY = (
    "Restore the file from a copy, or move the directory aside and let this node catch up from the leader"
)


def read_batches(disk: Disk, directory: str, start: int, end: int, position: int = 0) -> Iterator[Batch]:
    """Yield checked batches covering [start, end).

    position is that of a batch at or before start in its segment, where the walk begins. All files are opened
    before the first batch is read, so segments may be deleted meanwhile. Raises CorruptStorage for damage,
    for a gap, and if no batch begins at start or ends at end.
    """
    bases = sorted(
        offset
        for name in disk.list_names(directory)
        if name.endswith(LOG_SUFFIX) and (offset := offset_of_name(name)) is not None
    )
    first = bisect_right(bases, start) - 1
    if first < 0:
        raise CorruptStorage(directory, 0, start, "no segment holds this offset", _REMEDY)
    paths = [f"{directory}/{segment_name(base, LOG_SUFFIX)}" for base in bases[first:] if base < end]
    files = [disk.open(path) for path in paths]
    expected = start
    try:
        for path, file in zip(paths, files, strict=True):
            try:
                for batch in scan(file, position, file.size_bytes()):
                    header = batch.header
                    if header.next_offset <= start:
                        continue
                    if header.base_offset != expected:
                        reason = f"offset {header.base_offset} is where {expected} belongs"
                        raise CorruptStorage(path, batch.position, expected, reason, _REMEDY)
                    expected = header.next_offset
                    yield batch
                    if expected >= end:
                        break
            except CorruptBatch as error:
                raise CorruptStorage(path, error.position, expected, error.reason, _REMEDY) from None
            position = 0
        if expected != end:
            raise CorruptStorage(
                paths[-1] if paths else directory, 0, expected, f"no batch ends at offset {end}", _REMEDY
            )
    finally:
        for file in files:
            file.close()
