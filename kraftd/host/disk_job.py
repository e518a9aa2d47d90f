"""A job for the disk thread, which is retried while the disk is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kraftd.log.errors import DiskFull

T = TypeVar("T")

RETRY_MS = 500  # between attempts on a full disk

Notify = Callable[..., object]


class DiskJob(Generic[T]):
    """`work` is done in the thread; everything else is called on the event loop, in this order.

    filled(error) once, if the disk is full; has_room() when it no longer is; done(result). `effect` is its
    cause, None without one; `syncs` says that it waits for stable storage.
    """

    __slots__ = ("_done", "_filled", "_has_room", "_is_waiting", "_work", "effect", "syncs")

    def __init__(
        self,
        work: Callable[[], T],
        done: Callable[[T], object],
        *,
        filled: Callable[[DiskFull], object],
        has_room: Callable[[], object],
        effect: Any = None,
        syncs: bool = False,
    ) -> None:
        self._work = work
        self._done = done
        self._filled = filled
        self._has_room = has_room
        self._is_waiting = False
        self.effect = effect
        self.syncs = syncs

    @property
    def is_waiting(self) -> bool:
        """Return whether an attempt has found the disk full."""
        return self._is_waiting

    def attempt(self, notify: Notify) -> bool:
        """Do the work; return whether it is done, False while the disk is full.

        `notify` calls functions on the event loop, in order. Raises what the work raises.
        """
        try:
            result = self._work()
        except DiskFull as error:
            if not self._is_waiting:
                self._is_waiting = True
                notify(self._filled, error)
            return False
        if self._is_waiting:
            notify(self._has_room)
        notify(self._done, result)
        return True

    def __repr__(self) -> str:
        return f"<DiskJob {self.effect!r}{', waits for room' if self._is_waiting else ''}>"
