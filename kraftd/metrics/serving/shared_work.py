"""Work that many requests ask for at once: done for one of them at a time, and shared by the others.

Each piece of a scrape lets other callbacks run. But the pieces of all scrapes under way run between two looks
at the sockets: 64 at once would hold the event loop for 64 pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Found = TypeVar("Found")


class SharedWork(Generic[Found]):
    """`get` returns what was begun after its call, not what is older."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()
        self._asked = 0  # the number of the newest call
        self._asking = 0  # calls without a result yet
        self._last: tuple[str, int, Found] | None = None  # the key; the newest call when it was begun

    async def get(self, key: str, make: Callable[[], Awaitable[Found]]) -> Found:
        """The result of `make`, or that of another call with the same key."""
        self._asked += 1
        self._asking += 1
        number = self._asked
        try:
            async with self._alone:
                last = self._last
                if last is not None and last[0] == key and last[1] >= number:
                    return last[2]
                begun = self._asked
                made = await make()
                self._last = key, begun, made
                await asyncio.sleep(0)  # other callbacks come before the next work
                return made
        finally:
            self._asking -= 1
            if not self._asking:
                self._last = None  # it may be large

    def __repr__(self) -> str:
        return f"<SharedWork for {self._asking} calls>"
