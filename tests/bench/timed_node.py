"""``python tests/bench/timed_node.py FILE ...``: kraftd, whose event loop measures its longest turn.

A timer that is due every few milliseconds reads the processor time of the loop's thread: a turn without end
shows as the time between two of its calls. Other processes, and threads that leave the interpreter to the
loop, count for nothing, so the measure holds on a busy machine. FILE has the longest turn in milliseconds.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from time import thread_time_ns

import uvloop

from kraftd.cli.main import main

EVERY_S = 0.005
_NS = 1_000_000


class Turns:
    """The longest time between two calls of a timer, by the clock of the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: Path) -> None:
        self._loop, self._file = loop, file
        self._before_ns = 0
        self._longest_ns = 0
        loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Begin with the loop, not with the work of the start before it."""
        self._before_ns = thread_time_ns()
        self._loop.call_later(EVERY_S, self._look)

    def _look(self) -> None:
        now_ns = thread_time_ns()
        if now_ns - self._before_ns > self._longest_ns:
            self._longest_ns = now_ns - self._before_ns
            self._file.write_text(f"{self._longest_ns / _NS:.1f}")
        self._before_ns = thread_time_ns()
        self._loop.call_later(EVERY_S, self._look)


def timed(file: Path) -> None:
    """Let each new event loop measure its turns."""
    make = uvloop.new_event_loop

    def made() -> uvloop.Loop:
        loop = make()
        Turns(loop, file)
        return loop

    uvloop.new_event_loop = made


if __name__ == "__main__":
    timed(Path(sys.argv.pop(1)))
    main()
