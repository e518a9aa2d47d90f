"""The code of a broker's coordinators: loaded at a start that needs it, else in a thread a little later.

So a first record waits less, and a first request of a group or transaction seldom for more than that.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Iterable
from contextlib import suppress

from kraftd.broker_node.coordination.late_coordinators import TOPICS

LATER_S = 3.0


def load_coordinators(log_dirs: Iterable[str], loop: asyncio.AbstractEventLoop) -> None:
    """Load the code now if a directory has logs of coordinators' topics, else in some seconds."""
    if has_coordinators_logs(log_dirs):
        _load()
    else:
        loop.call_later(LATER_S, threading.Thread(target=_load_later, args=(loop,), daemon=True).start)


def has_coordinators_logs(log_dirs: Iterable[str]) -> bool:
    """Return whether one of the directories has a log of a coordinator's topic."""
    for directory in log_dirs:
        with suppress(OSError):  # of a directory that cannot be read, none is opened either
            if any(name.rpartition("-")[0] in TOPICS for name in os.listdir(directory)):
                return True
    return False


def _load() -> None:
    import kraftd.broker_node.coordination.coordinators  # noqa: F401


def _load_later(loop: asyncio.AbstractEventLoop) -> None:
    _load()
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(gc.freeze)  # as after the start: code is no garbage
