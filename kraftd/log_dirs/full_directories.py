"""The log directories of a broker whose disks have no room: records there are refused until they have."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.disk import Disk
from kraftd.log.errors import StorageError
from kraftd.named_tuple import NamedTuple

SURE_MS = 60_000  # so long after a refused write, the disk's own count of free bytes is believed
ROOM_BYTES = 64 << 20
TOLD_AGAIN_MS = 60_000  # each write that finds no room would be a line of the process log


class Room(NamedTuple):
    """What the disk of a directory has free, None if it does not tell; what logs need that wait for it."""

    free_bytes: int | None
    needed_bytes: int


class FullDirectories:
    """When a write found no room last, by the directory's path. A write that succeeds there ends it, or, if
    nothing is written any more, a disk that has ROOM_BYTES again. needed_bytes: what the logs of one need.
    """

    def __init__(
        self, disk: Disk, now_ms: Callable[[], int], needed_bytes: Callable[[str], int] = lambda path: 0
    ) -> None:
        self._disk = disk
        self._now_ms = now_ms
        self.needed_bytes = needed_bytes
        self._refused_ms: dict[str, int] = {}
        self._told_ms: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<FullDirectories {', '.join(self._refused_ms) or 'none'}>"

    def note(self, path: str) -> bool:
        """A write found no room; return whether the process log should say so, which it did not lately."""
        now_ms = self._refused_ms[path] = self._now_ms()
        if now_ms - self._told_ms.get(path, -TOLD_AGAIN_MS) < TOLD_AGAIN_MS:
            return False
        self._told_ms[path] = now_ms
        return True

    def room(self, path: str) -> Room:
        """How much room its disk has, and how much is needed."""
        return Room(self._free_bytes(path), self.needed_bytes(path))

    def rooms(self) -> dict[str, Room]:
        """The same of all of them."""
        return {path: self.room(path) for path in sorted(self._refused_ms)}

    def _free_bytes(self, path: str) -> int | None:
        try:
            return self._disk.space_bytes(path)[1]
        except StorageError:
            return None

    def wrote(self, path: str) -> None:
        """A write succeeded."""
        if self._refused_ms:
            self._refused_ms.pop(path, None)

    def ages_ms(self) -> dict[str, int]:
        """How long ago each directory refused a write last. Looks at disks of those only."""
        now_ms = self._now_ms()
        for path, refused_ms in list(self._refused_ms.items()):
            if now_ms - refused_ms > SURE_MS and self._has_room(path):
                del self._refused_ms[path]
        return {path: now_ms - refused_ms for path, refused_ms in sorted(self._refused_ms.items())}

    def _has_room(self, path: str) -> bool:
        return (self._free_bytes(path) or 0) >= ROOM_BYTES
