"""Reads and checks all files of a log, as `kraftd dump --verify` does; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kraftd.log.disk import Disk
from kraftd.log.errors import StorageError
from kraftd.metadata_dir.showing.dump import find_dumpable, verify

MAX_ROWS_PER_FILE = 100  # enough to show that it must be replaced


def check_files(
    disk: Disk, directory: str, end_offset: int, unreadable: Callable[[StorageError], object]
) -> Iterator[dict[str, Any]]:
    """The damage in a directory, one row for each piece; records at or past end_offset may be unfinished
    writes.

    `unreadable` gets each file that cannot be read; one that retention deletes meanwhile is skipped.
    """
    for path in find_dumpable(disk, [directory]):
        try:
            for row in islice(verify(disk, path), MAX_ROWS_PER_FILE):
                offset = row["offset"]
                # Wrong indexes are made anew.
                if row["path"] == path and (offset is None or offset < end_offset):
                    yield row
        except FileNotFoundError:
            continue
        except StorageError as error:
            unreadable(error)
