"""Reading all files of a log and checking them, as `kraftd dump --verify` does; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kraftd.log.disk import Disk
from kraftd.log.errors import StorageError
from kraftd.metadata_dir.dump import find_dumpable, verify

MAX_ROWS_A_FILE = 100  # enough to see that it has to be replaced


def check_files(
    disk: Disk, directory: str, end_offset: int, unreadable: Callable[[StorageError], object]
) -> Iterator[dict[str, Any]]:
    """The damage in a directory, a row for each piece; what is at or past end_offset may be being written.

    A file that cannot be read is told to `unreadable`, one that retention deletes meanwhile is passed over.
    """
    for path in find_dumpable(disk, [directory]):
        try:
            for row in islice(verify(disk, path), MAX_ROWS_A_FILE):
                offset = row["offset"]
                # Indexes are made anew when they are wrong.
                if row["path"] == path and (offset is None or offset < end_offset):
                    yield row
        except FileNotFoundError:
            continue
        except StorageError as error:
            unreadable(error)
