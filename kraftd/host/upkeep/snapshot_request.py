"""A snapshot on demand: two small files beside the metadata log, the request and the answer.

Kafka's protocol has no such request, and a user with write access to the directory may do worse than ask.
`kraftd snapshot` writes `snapshot.request.NAME` and waits for `snapshot.answer.NAME`. A running daemon looks
for requests once a second, if a name in the directory has changed. They are among few files; the directory
above may have those of 100,000 partitions. Each request has files of its own, so several may wait at the
same time. A killed command leaves its answer: the daemon deletes answers that are ten minutes old.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import DiskFull
from kraftd.types import OffsetAndEpoch

FULL = b'{"asked": "", "error": "the disk is full: make room on it; the log of the controller says more"}'
REQUEST = "snapshot.request."
ANSWER = "snapshot.answer."
UNFINISHED = ".tmp"
KEPT_MS = 600_000  # a command looks for its answer ten times a second


class SnapshotAnswer(Struct, frozen=True, kw_only=True):
    """The result of the request of that name: the newest checkpoint, or why there is no new one."""

    request: str = field(name="asked")
    path: str = ""
    size_bytes: int = 0
    error: str = ""


def request_snapshot(disk: Disk, directory: str, name: str) -> None:
    """Request a snapshot of the log in a directory from its daemon, under a unique name."""
    write_atomically(disk, f"{directory}/{REQUEST}{name}", b"")


class WaitingRequests:
    """The requests that wait in a directory, which is listed only after a name in it has changed."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._seen_ms = (-1, -1)  # when it was modified, as seen by the last two listings

    def take(self) -> list[str]:
        """Remove the waiting requests and return their names. Raises StorageError.

        A changed directory is listed twice: two changes within a tick of the kernel have the same time.
        """
        try:
            modified_ms = self._disk.modified_ms(self._directory)
        except FileNotFoundError:
            return []
        if self._seen_ms == (modified_ms, modified_ms):
            return []
        self._seen_ms = (self._seen_ms[1], modified_ms)
        return take_requests(self._disk, self._directory)

    def __repr__(self) -> str:
        return f"<WaitingRequests in {self._directory}>"


def take_requests(disk: Disk, directory: str) -> list[str]:
    """Remove the waiting requests and return their names."""
    found = [
        name
        for name in disk.list_names(directory)
        if name.startswith(REQUEST) and not name.endswith(UNFINISHED)
    ]
    for name in found:
        disk.remove(f"{directory}/{name}")
    return [name.removeprefix(REQUEST) for name in found]


class Leftovers:
    """Files that a killed command leaves: its answer, and half-written files of it or of the daemon.

    Ages are counted from when this process saw the file first, so clocks and restarts cannot shorten them.
    """

    def __init__(self) -> None:
        self._seen_ms: dict[str, int] = {}

    def remove_old(self, disk: Disk, directory: str, now_ms: int) -> None:
        """Remove leftovers that have existed for KEPT_MS. Raises StorageError; the removal is repeated after
        KEPT_MS.
        """
        names = [name for name in disk.list_names(directory) if _may_be_left(name)]
        self._seen_ms = {name: self._seen_ms.get(name, now_ms) for name in names}
        for name, seen_ms in self._seen_ms.items():
            if now_ms - seen_ms >= KEPT_MS:
                self._seen_ms[name] = now_ms
                disk.remove(f"{directory}/{name}")

    def __repr__(self) -> str:
        return f"<Leftovers {len(self._seen_ms)}>"


def _may_be_left(name: str) -> bool:
    return name.startswith(ANSWER) or (name.startswith(REQUEST) and name.endswith(UNFINISHED))


def answer(disk: Disk, directory: str, result: SnapshotAnswer) -> None:
    """Write the answer. On a full disk it is empty, which needs no space, and StorageError is raised."""
    path = f"{directory}/{ANSWER}{result.request}"
    try:
        write_atomically(disk, path, msgspec.json.encode(result))
    except DiskFull:
        disk.open(path, create=True).close()
        raise


def take_answer(disk: Disk, directory: str, name: str) -> SnapshotAnswer | None:
    """Remove and return the answer to that request; None while there is none."""
    path = f"{directory}/{ANSWER}{name}"
    try:
        data = disk.read_bytes(path)
        found = msgspec.json.decode(data or FULL, type=SnapshotAnswer)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    disk.remove(path)
    return found


def name_of(snapshot_id: OffsetAndEpoch) -> str:
    """The name of a snapshot in log lines: `205268-5`."""
    return f"{snapshot_id.offset}-{snapshot_id.epoch}"
