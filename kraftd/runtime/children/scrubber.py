"""The process that reads all files of a log and checks them.

`python -m kraftd.runtime.children.scrubber DIRECTORY END`, started by the daemon, at a low priority; it ends
with it. Each line on stdout is a damage row as JSON, as in `kraftd dump --verify`; nothing is changed. Bytes
at or past offset END may still be in the middle of a write.
"""

from __future__ import annotations

import gc
import os
import sys

from kraftd.host.upkeep.scrubbing import check_files
from kraftd.log.disk import RealDisk
from kraftd.log.errors import StorageError
from kraftd.metadata_dir.showing.dump import as_json_line
from kraftd.runtime.children.snapshot_writer import LOW_PRIORITY, end_with_parent


def main(arguments: list[str]) -> int:
    """Check one directory; returns 0 unless a file could not be read."""
    gc.disable()
    os.nice(LOW_PRIORITY)
    end_with_parent()
    directory, end_offset = arguments[0], int(arguments[1])
    errors: list[StorageError] = []
    for row in check_files(RealDisk(), directory, end_offset, errors.append):
        sys.stdout.buffer.write(as_json_line(row))
    for error in errors:
        print(error, file=sys.stderr)
    sys.stdout.flush()
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
