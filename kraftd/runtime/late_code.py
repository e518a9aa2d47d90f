"""The code of a broker's coordinators: loaded at a start that needs it, else in a thread a little later.

So a first record waits less. What needs the code before lets the thread begin at once, and waits for it while
the event loop goes on.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module

from kraftd.broker_node.coordination.late_coordinators import TOPICS
from kraftd.broker_node.routes import OF_COORDINATORS

LATER_S = 3.0


def has_coordinators_logs(log_dirs: Iterable[str]) -> bool:
    """Return whether one of the directories has a log of a coordinator's topic."""
    for directory in log_dirs:
        with suppress(OSError):  # of a directory that cannot be read, none is opened either
            if any(name.rpartition("-")[0] in TOPICS for name in os.listdir(directory)):
                return True
    return False


def load_coordinators() -> None:
    """Load their code. Blocks, for some tens of milliseconds."""
    import kraftd.broker_node.coordination.coordinators  # noqa: F401

    for module in set(OF_COORDINATORS.values()):
        import_module(module)


class LateCode:
    """Loads the code once, LATER_S from now at the latest; `loaded` is called then."""

    def __init__(self, loop: asyncio.AbstractEventLoop, loaded: Callable[[], None]) -> None:
        self._loop = loop
        self._loaded = loaded
        self._loading: asyncio.Future[None] | None = None
        loop.call_later(LATER_S, self.load)

    def load(self) -> asyncio.Future[None]:
        """Begin to load the code, if that has not begun; returns when it is loaded."""
        if self._loading is None:
            self._loading = self._loop.create_future()
            threading.Thread(target=self._load, args=(self._loading,), daemon=True).start()
        return self._loading

    def _load(self, loading: asyncio.Future[None]) -> None:
        try:
            load_coordinators()
        finally:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._done, loading)

    def _done(self, loading: asyncio.Future[None]) -> None:
        gc.freeze()  # as after the start: code is no garbage
        loading.set_result(None)
        self._loaded()

    def __repr__(self) -> str:
        return f"<LateCode {'not asked for' if self._loading is None else self._loading}>"
