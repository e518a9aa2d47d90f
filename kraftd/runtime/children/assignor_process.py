"""The process in which a custom assignor runs, so that it cannot hold the daemon's event loop.

The first frame on standard input is a pickle of the assignor's name and the file's properties, each further
one a group. Each group is answered with a frame of its members' partitions, or of the fault. What the
assignor prints goes to standard error. The process ends with the daemon, or if a group takes longer than the
daemon waits.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from queue import SimpleQueue
from traceback import format_exc

from kraftd.groups.consumer.assignors.custom import called
from kraftd.groups.consumer.assignors.spec import AssignorFailed, finish
from kraftd.runtime.children.assignor_messages import (
    decode_group,
    encode_answer,
    encode_failure,
    read_frame,
    write_frame,
)
from kraftd.runtime.children.snapshot_writer import LOW_PRIORITY, ORPHANED
from kraftd.runtime.entry_points import load_entry_point

KEY = "group.consumer.assignors"
GROUP = "kraftd.assignor"
LIMIT_S = 60  # for one group


def main() -> None:
    """Answer each group, until standard input ends."""
    os.nice(LOW_PRIORITY)
    frames: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        while (frame := read_frame(sys.stdin.buffer)) is not None:
            frames.put(frame)
        os._exit(ORPHANED)

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=read, name="kraftd-parent", daemon=True).start()
    name, properties = pickle.loads(frames.get())
    function = load_entry_point(KEY, name, GROUP, properties)
    while True:
        frame = frames.get()
        signal.alarm(LIMIT_S + 5)  # ends this process, even if no thread of it can run
        try:
            answer = encode_answer(finish(called(function, decode_group(frame))))
        except AssignorFailed as error:
            answer = encode_failure(str(error))
        except Exception as error:
            answer = encode_failure(f"{error!r}\n{format_exc()}")
        signal.alarm(0)
        write_frame(out, answer)


if __name__ == "__main__":
    main()
