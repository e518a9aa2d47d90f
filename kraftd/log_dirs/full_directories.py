"""The log directories of a broker whose disks have no room: records there are refused until they have."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.disk import Disk
from kraftd.log.errors import StorageError

SURE_MS = 60_000  # so long after a refused write, the disk's own count of free bytes is believed
ROOM_BYTES = 64 << 20


class FullDirectories:
    """When a write found no room last, by the directory's path. A write that succeeds there ends it, or, if
    nothing is written any more, a disk that has ROOM_BYTES again.
    """

    def __init__(self, disk: Disk, now_ms: Callable[[], int]) -> None:
        self._disk = disk
        self._now_ms = now_ms
        self._refused_ms: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<FullDirectories {', '.join(self._refused_ms) or 'none'}>"

    def note(self, path: str) -> None:
        """A write found no room."""
        self._refused_ms[path] = self._now_ms()

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
        try:
            return self._disk.space_bytes(path)[1] >= ROOM_BYTES
        except StorageError:
            return False
