"""The daemon's metrics: the current readings, and the listener that serves them.

The metrics package imports a library that costs time and memory at the start, so this module is loaded only
if `kraftd.metrics.listener` is set.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from time import monotonic_ns

from kraftd.config import DaemonConfig
from kraftd.config.listeners import METRICS_LISTENER
from kraftd.histogram import Histogram
from kraftd.host.upkeep.snapshot_keeper import SnapshotKeeper
from kraftd.metrics.pages import Pages
from kraftd.metrics.serving.http import MAX_CONNECTIONS, Handler, HttpConnections
from kraftd.metrics.serving.known_hosts import with_known_hosts
from kraftd.metrics.serving.password import with_password
from kraftd.metrics.state.readings import Readings, SnapshotReadings
from kraftd.metrics.status_page.links import status_urls
from kraftd.runtime.connections.acceptor import Acceptor
from kraftd.runtime.reporting.loop_hold_times import BOUNDS_MS, LoopHoldTimes
from kraftd.runtime.runner import Runner
from kraftd.wire.engine import engine_name

KAFKA = "4.3.1"  # the Kafka release of these metrics
_IO = "/proc/self/io"


class Scrape:
    """The name, in the log and the holds, of a callback that writes the text of a scrape."""


class Watch:
    """The metrics listener of a daemon, on a socket that is bound already."""

    def __init__(
        self, config: DaemonConfig, runner: Runner, keeper: SnapshotKeeper, is_stopping: Callable[[], bool]
    ) -> None:
        self._config = config
        self._runner = runner
        self._keeper = keeper
        self._is_stopping = is_stopping
        self._about = {"version": version("kraftd"), "codec": engine_name(), "kafka": KAFKA}
        assert config.metrics_listener is not None
        self._endpoint = config.metrics_listener
        handle: Handler = Pages(
            self.readings, self._held, config.metrics_names, runner.sight.ask, self._load_code
        ).handle
        if config.metrics_password:
            delay_s = config.connection_failed_authentication_delay_ms / 1000
            handle = with_password(
                handle, config.metrics_user, config.metrics_password, delay_s, self._refused
            )
        handle = with_known_hosts(handle, known_names(config))
        self._connections = HttpConnections(runner.loop, handle, self._failed)
        self._server: asyncio.AbstractServer | Acceptor | None = None

    async def start(self, sock: socket.socket) -> None:
        loop, connections = self._runner.loop, self._connections
        guard = self._runner.security.listeners.get(METRICS_LISTENER)
        if guard is None or guard.tls is None:
            self._server = await loop.create_server(connections.factory, sock=sock)
            return
        sock.listen(MAX_CONNECTIONS)
        failed = partial(self._runner.logins.handshake_failed, METRICS_LISTENER)
        timeout_ms = self._config.ssl_handshake_timeout_ms
        pool, made = self._runner.handshakes, connections.factory
        self._server = Acceptor(
            loop, sock, made, connections, guard.tls, timeout_ms, failed, MAX_CONNECTIONS, pool
        )

    def close(self) -> None:
        if isinstance(self._server, Acceptor):
            self._server.abort()
        elif self._server is not None:
            self._server.close()
        self._connections.close()

    async def _load_code(self) -> None:
        """Wait for what the pages of a broker need."""
        if (late := self._runner.late_code) is not None:
            await asyncio.shield(late.load())

    def _refused(self) -> None:
        reason = "wrong user or password"
        self._runner.logins.limited_log.warn("login failed", listener=METRICS_LISTENER, reason=reason)

    def _held(self, took_ns: int) -> None:
        self._runner.loop_hold_times.note(Scrape(), took_ns)

    def _failed(self, error: Exception) -> None:
        self._runner.log.error("a page of the metrics listener failed", error=repr(error), exc_info=error)

    def readings(self) -> Readings:
        runner, keeper = self._runner, self._keeper
        node, storage = runner.node, runner.storage
        now_ms = runner.clock.now_ms()
        download = runner.downloads
        clients = next((one.node for one in runner.served), None)
        boundaries = [node.boundary, *(one.node.boundary for one in runner.served)]
        reader = download.download.reader or storage.snapshot_reader
        last = runner.truncations.last
        return Readings(
            now_ms=now_ms,
            wall_ms=now_ms + runner.clock.wall_ahead_ms(),
            node=node,
            storage=storage,
            raft=node.core.metrics(now_ms),
            steps=steps(runner.loop_hold_times),
            longest_step_ns=runner.loop_hold_times.longest_ns,
            delays=runner.delays,
            syncs=runner.syncs.times,
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
            sight=runner.sight.latest,
            status_urls=status_urls(node, self._endpoint, self._config.metrics_nodes),
            disk_room=disk_room(self._config.metadata_log_dir),
            about=self._about,
            events=runner.audit.recent,
            troubles=runner.troubles.lines(),
            refused=node.boundary.refusals.lines(monotonic_ns()),
            ahead=node.core_answers.replicas_ahead(),
            went_back=node.core_answers.went_back(now_ms),
            duplicate_ids=[*node.core_answers.duplicate_ids(now_ms), *node.registration.duplicate()],
            addresses=runner.addresses.check.lines(),
            logins=runner.logins.counts(),
            certificates=runner.security.certificate_expiries(),
            authorizations=(
                sum(one.authorizations.denied for one in boundaries),
                sum(one.authorizations.allowed for one in boundaries),
            ),
            clients=clients,
            log_cleaner=runner.log_cleaner,
            full_directories={} if (full := runner.full_directories) is None else full.ages_ms(),
            full_rooms={} if full is None else full.rooms(),
            truncations=(runner.truncations.count, runner.truncations.records),
            last_truncation=None if last is None else {"at_ms": last.at_ms, **last.fields},
        )

    def __repr__(self) -> str:
        return f"<Watch {self._connections!r}>"


def known_names(config: DaemonConfig) -> set[str]:
    """The host names under which the pages of this node are served."""
    listener = config.metrics_listener
    advertised = {endpoint.host for endpoint in (*config.advertised_listeners, *config.listeners)}
    names = {socket.gethostname(), *config.metrics_hosts, *advertised}
    return names if listener is None else {*names, listener.host}


def steps(holds: LoopHoldTimes) -> Histogram:
    """The holds of the loop as a histogram of nanoseconds."""
    found = Histogram([bound_ms * 1_000_000 for bound_ms in BOUNDS_MS])
    found.counts = list(holds.counts)
    found.total = holds.total_ns
    return found


def disk_room(directory: str) -> tuple[int, int] | None:
    """Free and all bytes of the disk of a directory; None if the system does not tell."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize


def disk_bytes() -> tuple[int, int] | None:
    """Bytes that this process has read from disks and written to them; None if the system does not count
    them.
    """
    try:
        with open(_IO) as file:
            found = dict(line.split(": ") for line in file.read().splitlines())
        return int(found["read_bytes"]), int(found["write_bytes"])
    except (OSError, KeyError, ValueError):
        return None
