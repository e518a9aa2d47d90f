"""A snapshot on demand: two small files in the metadata directory, one asks, the other answers.

Kafka's protocol has no such request, and whoever may write to the directory may do worse than ask. `kraftd
snapshot` writes the request and waits for the answer; a running daemon looks for it twice a second.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kraftd.storage.disk import Disk, write_atomically
from kraftd.types import OffsetAndEpoch

REQUEST = "snapshot.request"
ANSWER = "snapshot.answer"


class SnapshotAnswer(Struct, frozen=True, kw_only=True):
    """What came of the request `asked`: the newest checkpoint, or why there is no new one."""

    asked: str
    path: str = ""
    size_bytes: int = 0
    error: str = ""


def ask(disk: Disk, directory: str, name: str) -> None:
    """Ask the daemon of a directory for a snapshot, under a name that no other request has."""
    write_atomically(disk, f"{directory}/{REQUEST}", name.encode())


def take_request(disk: Disk, directory: str) -> str | None:
    """The name of the request that waits, which waits no more; None where there is none."""
    path = f"{directory}/{REQUEST}"
    if not disk.exists(path):
        return None
    name = disk.read_bytes(path).decode(errors="replace")[:100]
    disk.remove(path)
    return name


def answer(disk: Disk, directory: str, given: SnapshotAnswer) -> None:
    write_atomically(disk, f"{directory}/{ANSWER}", msgspec.json.encode(given))


def take_answer(disk: Disk, directory: str, name: str) -> SnapshotAnswer | None:
    """The answer to that request, None as long as there is none."""
    path = f"{directory}/{ANSWER}"
    try:
        given = msgspec.json.decode(disk.read_bytes(path), type=SnapshotAnswer)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    if given.asked != name:
        return None
    disk.remove(path)
    return given


def name_of(snapshot_id: OffsetAndEpoch) -> str:
    """How a log line names a snapshot: `205268-5`."""
    return f"{snapshot_id.offset}-{snapshot_id.epoch}"
