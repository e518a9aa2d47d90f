"""``python -m bench.loop_callbacks FILE ...``: kraftd, with the CPU time of each callback of its event loop.

The rest of the command line is kraftd's. FILE gets a line of JSON for each callback that took the loop's
thread more than LONG_MS of its own CPU time. Other processes do not lengthen that. The line has the callback,
what it was called with, the time, and how much of it was garbage collection. asyncio's loop
runs in place of uvloop's, because its callbacks can be wrapped.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from typing import Any

LONG_MS = 8.0
_NS = 1_000_000


class Collections:
    """The CPU time of garbage collections of this thread."""

    def __init__(self) -> None:
        self.total_ns = self._began_ns = 0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        now_ns = time.thread_time_ns()
        if phase == "start":
            self._began_ns = now_ns
        else:
            self.total_ns += now_ns - self._began_ns


def watch(path: str) -> None:
    """Have each callback of loops that are made from now on timed."""
    import uvloop

    uvloop.new_event_loop = asyncio.new_event_loop  # type: ignore[assignment]
    out = open(path, "a", buffering=1)  # noqa: SIM115 - until the process ends
    collections, run = Collections(), asyncio.Handle._run

    def timed(handle: Any) -> None:
        what, arguments = handle._callback, handle._args
        collected_ns, began_ns = collections.total_ns, time.thread_time_ns()
        run(handle)
        took_ns = time.thread_time_ns() - began_ns
        if took_ns > LONG_MS * _NS:
            line = {
                "at_s": round(time.time(), 2),
                "ms": round(took_ns / _NS, 1),
                "of_gc_ms": round((collections.total_ns - collected_ns) / _NS, 1),
                "callback": repr(what)[:300],
                "arguments": repr(arguments)[:300],
            }
            out.write(json.dumps(line) + "\n")

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    transport: Any = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    set_protocol = transport.set_protocol

    def set_buffered(self: Any, protocol: Any) -> None:
        set_protocol(self, protocol)
        if hasattr(protocol, "get_buffer"):  # uvloop asks for no base class
            self._read_ready_cb = self._read_ready__get_buffer

    transport.set_protocol = set_buffered


def main() -> None:
    path = sys.argv.pop(1)
    sys.argv[0] = "kraftd"
    watch(path)
    from kraftd.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
