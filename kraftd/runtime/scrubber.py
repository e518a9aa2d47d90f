"""The process that reads all files of a log and checks them.

`python -m kraftd.runtime.scrubber DIRECTORY END`, started by the daemon, at a low priority; it ends with
it. Damage is a row of JSON a line on stdout, as
`kraftd dump --verify` has it; nothing is changed. What is at or past offset END may still be being written.
"""

from __future__ import annotations

import gc
import os
import sys
from itertools import islice

from kraftd.runtime.snapshot_writer import LOW_PRIORITY, end_with_parent
from kraftd.storage.disk import RealDisk
from kraftd.storage.dump import as_json_line, find_dumpable, verify
from kraftd.storage.errors import StorageError

MOST_ROWS = 100  # of one file: enough to see that it has to be replaced


def main(arguments: list[str]) -> int:
    """Check one directory; 0 unless something could not be read at all."""
    gc.disable()
    os.nice(LOW_PRIORITY)
    end_with_parent()
    directory, end_offset = arguments[0], int(arguments[1])
    disk = RealDisk()
    exit_code = 0
    for path in find_dumpable(disk, [directory]):
        try:
            for row in islice(verify(disk, path), MOST_ROWS):
                offset = row["offset"]
                # Indexes are made anew when they are wrong.
                if row["path"] == path and (offset is None or offset < end_offset):
                    sys.stdout.buffer.write(as_json_line(row))
        except FileNotFoundError:
            continue  # retention was quicker
        except StorageError as error:
            print(error, file=sys.stderr)
            exit_code = 1
    sys.stdout.flush()
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
