"""What the daemon tells whoever watches it: the readings of this moment, and the listener that gives them.

Its own module, for the room of metrics brings its library with it, which costs time and memory at the start:
it is loaded only where `kraftd.metrics.listener` is set.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from importlib.metadata import version

from kraftd.histogram import Histogram
from kraftd.metrics.http import HttpConnections
from kraftd.metrics.pages import Pages
from kraftd.metrics.readings import Readings, SnapshotReadings
from kraftd.runtime.holds import BOUNDS_MS, LoopHolds
from kraftd.runtime.runner import Runner
from kraftd.runtime.snapshots import SnapshotKeeper
from kraftd.wire.engine import engine_name

KAFKA = "4.3.1"  # whose metrics these are
_IO = "/proc/self/io"


class Scrape:
    """What held the loop, in the log and among the holds: a turn of writing the text of a scrape."""


class Watch:
    """The metrics listener of a daemon, on a socket that is bound already."""

    def __init__(self, runner: Runner, keeper: SnapshotKeeper, is_stopping: Callable[[], bool]) -> None:
        self._runner = runner
        self._keeper = keeper
        self._is_stopping = is_stopping
        self._about = {"version": version("kraftd"), "codec": engine_name(), "kafka": KAFKA}
        self._connections = HttpConnections(
            runner.loop, Pages(self.readings, self._held).handle, self._failed
        )
        self._server: asyncio.AbstractServer | None = None

    async def start(self, sock: socket.socket) -> None:
        self._server = await self._runner.loop.create_server(self._connections.factory, sock=sock)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._connections.close()

    def _held(self, took_ns: int) -> None:
        self._runner.holds.note(Scrape(), took_ns)

    def _failed(self, error: Exception) -> None:
        self._runner.log.error("a page of the metrics listener failed", error=repr(error), exc_info=error)

    def readings(self) -> Readings:
        runner, keeper = self._runner, self._keeper
        node, storage = runner.node, runner.storage
        now_ms = runner.clock.now_ms()
        download = runner.download
        reader = download.download.reader or storage.snapshot_reader
        return Readings(
            now_ms=now_ms,
            node=node,
            storage=storage,
            raft=node.core.metrics(now_ms),
            steps=steps(runner.holds),
            longest_step_ns=runner.holds.longest_ns,
            delays=runner.delays,
            syncs=runner.syncer.times,
            idle_ratio=runner.idle.measure(),
            disk_full=runner.disk_full,
            stopping=self._is_stopping(),
            connections=runner.connections,
            quorum_traffic=runner.quorum.outbound.traffic,
            controller_traffic=runner.controller.outbound.traffic,
            snapshots=SnapshotReadings(
                made=keeper.made,
                made_bytes=keeper.made_bytes,
                made_ms=keeper.made_ms,
                failures=keeper.failures,
                is_making=keeper.is_making,
                damaged_files=keeper.damaged_files,
                downloads=download.finished,
                downloads_refused=download.refused,
                download_bytes=download.bytes,
            ),
            snapshot_read=(0, 0) if reader is None else (reader.position, reader.size_bytes),
            disk_bytes=disk_bytes(),
            about=self._about,
        )

    def __repr__(self) -> str:
        return f"<Watch {self._connections!r}>"


def steps(holds: LoopHolds) -> Histogram:
    """The holds of the loop as a histogram of nanoseconds."""
    found = Histogram([bound_ms * 1_000_000 for bound_ms in BOUNDS_MS])
    found.counts = list(holds.counts)
    found.total = holds.total_ns
    return found


def disk_bytes() -> tuple[int, int] | None:
    """Bytes that this process has had read from disks and written to them; None where nobody counts."""
    try:
        with open(_IO) as file:
            found = dict(line.split(": ") for line in file.read().splitlines())
        return int(found["read_bytes"]), int(found["write_bytes"])
    except (OSError, KeyError, ValueError):
        return None
