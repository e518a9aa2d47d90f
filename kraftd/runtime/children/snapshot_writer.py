"""The process that makes one checkpoint, started by the daemon.

`python -m kraftd.runtime.children.snapshot_writer ORDER`: ORDER is a CheckpointOrder as JSON; a
CheckpointMade as JSON is the only output. The exit code is 0 if it was made, 1 with a text on stderr if it
failed. It runs at a low priority, and ends as soon as its standard
input ends, which means that the daemon has.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time

import msgspec

from kraftd.host.snapshots.checkpointing import CheckpointFailed, CheckpointOrder, carry_out
from kraftd.log.disk import RealDisk

# It gets a tenth of the daemon's share if both need the same core. At the lowest priority, a busy machine
# would make no snapshot for minutes, while the log grows.
LOW_PRIORITY = 10
DONE, FAILED, ORPHANED = 0, 1, 4


def end_with_parent() -> None:
    """End this process at once when standard input ends, whatever is under way."""

    def watch() -> None:
        while os.read(0, 64):
            pass
        os._exit(ORPHANED)

    threading.Thread(target=watch, name="kraftd-parent", daemon=True).start()


def main(arguments: list[str]) -> int:
    """Carry out one order; the exit code."""
    gc.disable()  # it builds one image, writes it, and ends
    os.nice(LOW_PRIORITY)
    end_with_parent()
    order = msgspec.json.decode(arguments[0], type=CheckpointOrder)
    try:
        made = carry_out(RealDisk(), order, time.time_ns() // 1_000_000)
    except CheckpointFailed as error:
        print(error, file=sys.stderr)
        return FAILED
    sys.stdout.buffer.write(msgspec.json.encode(made))
    sys.stdout.flush()
    return DONE


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # freeing the image object by object would only cost time
