"""What calls of a cluster wait for: told, once a wait lasts, so that a command does not seem to hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from kraftd.client.failures import ClientFailure, NoAnswer

TOLD_AFTER_S = 2.0


class Wait:
    """One wait, until it is ended; `failure` is why the last try failed. `tell` gets that, once."""

    def __init__(self, tell: Callable[[ClientFailure], None] | None) -> None:
        self.failure: ClientFailure = NoAnswer("no answer yet")
        self._began_s = time.monotonic()
        self._alarm: asyncio.TimerHandle | None = None
        if tell is not None:
            alarm = asyncio.get_running_loop().call_later(TOLD_AFTER_S, lambda: tell(self.failure))
            self._alarm = alarm

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def lasts(self, longer_than_s: float) -> bool:
        """Return whether it takes longer than that."""
        return time.monotonic() - self._began_s > longer_than_s

    def end(self) -> None:
        """What was waited for is there, or given up."""
        if self._alarm is not None:
            self._alarm.cancel()

    def __repr__(self) -> str:
        return f"<Wait: {self.failure}>"
