"""Judges the free space of a disk and the time of its syncs for a controller. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from kraftd.cli.doctor.findings import Finding, ok, problem, warning
from kraftd.named_tuple import NamedTuple

LITTLE_ROOM_BYTES = 64 << 20
LOW_ROOM_BYTES = 1 << 30
LOW_ROOM_PERCENT = 5
SLOW_SYNC_MS = 20.0  # the median: each commit waits for one
LONG_SYNC_MS = 200.0  # the longest
FASTER_DISK = "give metadata.log.dir a disk of its own, or a faster one"


class DiskState(NamedTuple):
    """Room in bytes, and how long each sync of a few KiB took."""

    free_bytes: int
    total_bytes: int
    sync_ms: Sequence[float]


def judge_disk(path: str, disk: DiskState, fetch_timeout_ms: int) -> Iterator[Finding]:
    """Findings of a data directory's disk. Syncs as long as half of the fetch timeout cost elections."""
    percent = 100 * disk.free_bytes / max(disk.total_bytes, 1)
    room = f"{size_text(disk.free_bytes)} free ({percent:.0f}%)"
    make_room = "make room, or move the directory to a larger disk"
    if disk.free_bytes < LITTLE_ROOM_BYTES:
        yield problem("disk", path, f"{room}: the log will soon have no room", make_room)
    elif disk.free_bytes < LOW_ROOM_BYTES or percent < LOW_ROOM_PERCENT:
        yield warning("disk", path, room, make_room)
    else:
        yield ok("disk", path, room)
    if not disk.sync_ms:
        return
    middle, longest = median(disk.sync_ms), max(disk.sync_ms)
    times = f"a sync takes {middle:.1f} ms, the longest of {len(disk.sync_ms)} took {longest:.1f} ms"
    if longest * 2 >= fetch_timeout_ms:
        late = f"{times}; with controller.quorum.fetch.timeout.ms={fetch_timeout_ms} that costs elections"
        yield problem("disk", path, late, FASTER_DISK)
    elif middle > SLOW_SYNC_MS or longest > LONG_SYNC_MS:
        yield warning("disk", path, times, FASTER_DISK)
    else:
        yield ok("disk", path, times)


def size_text(size_bytes: int) -> str:
    """`3.2 GiB`, or a smaller unit below one."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if size_bytes >= size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes // 1024} KiB"
