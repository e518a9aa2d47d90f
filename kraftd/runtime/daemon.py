"""The daemon: start, run until told to stop or something fails, stop.

`run` is what `kraftd start` calls. The order of starting: bind the listeners (so that a port in use costs
nothing), open and recover the directory, build the node, accept; replay goes on while requests are answered.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvloop

from kraftd.config import DaemonConfig
from kraftd.controller.context import Context, ControllerSettings
from kraftd.controller.heartbeats import BrokerHeartbeats
from kraftd.fetch.purgatory import Purgatory
from kraftd.metadata.features import default_bootstrap_records
from kraftd.metadata.image import Image
from kraftd.net.limits import Limits
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.events import ShutdownRequested, Started
from kraftd.raft.voters import NO_VOTERS, VoterSet
from kraftd.runtime import logs
from kraftd.runtime.clock import Clock
from kraftd.runtime.dice import SystemDice
from kraftd.runtime.runner import Runner
from kraftd.runtime.snapshots import SnapshotKeeper
from kraftd.server.identity import Identity
from kraftd.server.node import Node
from kraftd.server.storage import Storage, open_storage
from kraftd.storage.disk import RealDisk
from kraftd.storage.errors import CheckpointMissing, StorageError
from kraftd.types import Endpoint, uuid_text

if TYPE_CHECKING:
    from kraftd.runtime.watch import Watch

# Collections are rare: nearly everything that lives long is frozen, or a struct without cycles.
GC_THRESHOLDS = (15_000, 70, 50)  # a young collection takes about 3 ms then, others are rarer
STOPPING = "stopping"

Announce = Callable[[str, tuple[Endpoint, ...]], None]


class StartupError(Exception):
    """The daemon cannot start; the text says why and what to do."""


def run(config: DaemonConfig, announce: Announce | None = None) -> int:
    """Run the daemon until it is stopped; 0 after a clean stop, 1 when something failed meanwhile.

    announce is told the cluster id and the bound endpoints once connections are accepted.

    Raises StartupError, StorageError or OSError when it cannot start.
    """
    gc.disable()
    logs.configure(config.log_format, config.log_level, config.node_id)
    log = logs.logger()
    for warning in config.warnings:
        log.warning(warning)
    sockets = bind(config)
    metrics_socket = None
    loop = uvloop.new_event_loop()
    try:
        metrics_socket = bind_metrics(config)
        daemon = Daemon(config, sockets, loop, log, metrics_socket)
        return daemon.run(announce)
    finally:
        for sock, _ in sockets:
            sock.close()
        if metrics_socket is not None:
            metrics_socket.close()
        loop.close()


def bind(config: DaemonConfig) -> list[tuple[socket.socket, Endpoint]]:
    """A bound socket for each listener, with the port that it got. Raises StartupError."""
    bound: list[tuple[socket.socket, Endpoint]] = []
    try:
        for endpoint in config.listeners:
            sock = bind_one("listeners", endpoint, repr(endpoint), config.socket_listen_backlog_size)
            bound.append((sock, endpoint._replace(port=sock.getsockname()[1])))
    except BaseException:
        for sock, _ in bound:
            sock.close()
        raise
    return bound


def bind_metrics(config: DaemonConfig) -> socket.socket | None:
    """The socket of the metrics listener, if there is to be one. Raises StartupError."""
    endpoint = config.metrics_listener
    if endpoint is None:
        return None
    import kraftd.runtime.watch  # noqa: F401  # what takes a while to load is loaded before anybody is served

    text = f"{endpoint.host}:{endpoint.port}"
    return bind_one("kraftd.metrics.listener", endpoint, text, config.socket_listen_backlog_size)


def bind_one(key: str, endpoint: Endpoint, text: str, backlog: int) -> socket.socket:
    """A socket that listens there; the text is how the key has it. Raises StartupError."""
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((endpoint.host, endpoint.port))
        # Two processes may bind with SO_REUSEADDR; only one may listen.
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise StartupError(
            f"{key}={text}: cannot listen there: {error.strerror}. "
            f"Stop what uses the address, or choose another in {key}"
        ) from error
    return sock


class Daemon:
    """One node with its storage, listeners and signals."""

    def __init__(
        self,
        config: DaemonConfig,
        sockets: list[tuple[socket.socket, Endpoint]],
        loop: asyncio.AbstractEventLoop,
        log: Any,
        metrics_socket: socket.socket | None = None,
    ) -> None:
        self.config = config
        self.loop = loop
        self.log = log
        self.clock = Clock()
        self.dice = SystemDice()
        self.exit_code = 0
        self._sockets = sockets
        self._metrics_socket = metrics_socket
        self.watch: Watch | None = None
        self._servers: list[asyncio.AbstractServer] = []
        self._stopping = False
        self._asked_core = False
        self._end: asyncio.Future[None] = loop.create_future()
        self.storage = self._open_storage()
        try:
            for note in self.storage.notes:
                log.warning("recovered", note=note)
            node = build_node(config, self.storage, self.dice, self.clock, [end for _, end in sockets])
            self._say_if_another_directory_votes(node)
            self.runner = Runner(
                node,
                self.storage,
                limits(config),
                self.clock,
                log,
                loop,
                self._failed,
                config.quorum_request_timeout_ms,
            )
        except BaseException:
            self.storage.close()
            raise

    def _open_storage(self) -> Storage:
        disk, now_ms = RealDisk(), self.clock.now_ms()
        try:
            return open_storage(disk, self.config, now_ms, self.dice.uuid)
        except CheckpointMissing as missing:
            from kraftd.runtime.restoring import open_restored

            ports = [endpoint.port for _, endpoint in self._sockets]
            return open_restored(missing, disk, self.config, now_ms, self.dice.uuid, ports, self.log)

    def _say_if_another_directory_votes(self, node: Node) -> None:
        """Nothing else tells why a node whose id votes does not (KIP-853)."""
        voter, own = node.core.voters.get(self.config.node_id), self.storage.directory.directory_id
        if voter is not None and voter.key.directory_id not in (None, own):
            self.log.warning(
                "this directory does not vote: another one of this node does",
                directory_id=uuid_text(own),
                voter_directory_id=uuid_text(voter.key.directory_id),
                remedy="if directory.id in meta.properties was changed, put it back; otherwise remove the "
                "other voter and add this one",
            )

    def run(self, announce: Announce | None = None) -> int:
        """Serve until the end; the exit code."""
        return self.loop.run_until_complete(self._serve(announce))

    async def _serve(self, announce: Announce | None) -> int:
        # All of it in one run of the loop: between two, uvloop loses signals.
        loop = self.loop
        self.runner.on_loaded = self._loaded
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not by the loop, which would put the default back at its end: a second signal in the last
            # moments is no reason to end otherwise.
            signal.signal(number, self._signalled)
        self.runner.step(Started())
        self.snapshots = SnapshotKeeper(self.runner, self.config)
        if self._metrics_socket is not None:
            await self._start_watch(self._metrics_socket)
        for sock, endpoint in self._sockets:
            server = await loop.create_server(
                self.runner.connections.factory(endpoint.listener),  # type: ignore[arg-type]
                sock=sock,
                backlog=self.config.socket_listen_backlog_size,
            )
            self._servers.append(server)
            self.log.info("listening", listener=endpoint.listener, host=endpoint.host, port=endpoint.port)
        if announce is not None:
            announce(self.storage.directory.cluster_id, tuple(endpoint for _, endpoint in self._sockets))
        await self._end
        return await self._close()

    async def _start_watch(self, sock: socket.socket) -> None:
        from kraftd.runtime.watch import Watch

        self.watch = Watch(self.runner, self.snapshots, lambda: self._stopping)
        await self.watch.start(sock)
        host, port = sock.getsockname()[:2]
        self.log.info("metrics are served", host=host, port=port)

    def _signalled(self, number: int, _frame: object) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.stop, signal.Signals(number).name)

    def stop(self, why: str = "asked to") -> None:
        """Accept nothing more, answer what is in flight, then end; at once when asked a second time."""
        if self._stopping:
            self._finish()
            return
        self._stopping = True
        self.log.info("stopping", why=why)
        self.runner.node.stop()
        if self._alone:
            for server in self._servers:
                server.close()
            for connection in self.runner.connections:
                connection.stop_reading()
        self.runner.on_idle = self._idle
        self.loop.call_later(self.config.shutdown_timeout_ms / 1000, self._out_of_time)
        self._idle()

    def _idle(self) -> None:
        """After each step while stopping: has everything been answered, and has the core let go?"""
        runner = self.runner
        if runner.shutdown_completed:
            self._finish()
        elif (
            not self._asked_core
            and not runner.node.busy
            and not (self._alone and any(connection.waiting for connection in runner.connections))
        ):
            self._asked_core = True
            self.loop.call_soon(runner.step, ShutdownRequested(self.config.shutdown_timeout_ms))

    @property
    def _alone(self) -> bool:
        """Whether no other voter is needed to commit what is in flight, nor to be told of the end: only then
        nothing more needs to be read.
        """
        core = self.runner.node.core
        return core.voters.ids == [self.config.node_id]

    def _out_of_time(self) -> None:
        self.log.warning("stopping took too long", in_flight=len(self.runner.node.parked))
        self._finish()

    def _finish(self) -> None:
        if not self._end.done():
            self._end.set_result(None)

    async def _close(self) -> int:
        runner = self.runner
        self.snapshots.stop()
        if self.watch is not None:
            self.watch.close()
        runner.connections.close_all(STOPPING)
        for _ in range(3):  # let the transports send what they hold
            await asyncio.sleep(0)
        runner.stop()
        try:
            self.storage.close()
        except Exception as error:
            self.log.critical("the log could not be closed", error=str(error))
            return 1
        self.log.info("the event loop", **runner.holds.summary())
        self.log.info("stopped", exit_code=self.exit_code)
        return self.exit_code

    def _loaded(self) -> None:
        """Loaded: what is alive now stays alive. Collected it is not: that would take too long a while, and
        hardly anything of it is garbage.
        """
        self.runner.on_loaded = None
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()

    def _failed(self, error: BaseException) -> None:
        expected = isinstance(
            error, StorageError
        )  # its text says it all; anything else is a bug to be traced
        trace = {} if expected else {"exc_info": error}
        self.log.critical("fatal: the process ends", error=str(error) or repr(error), **trace)
        self.exit_code = 1
        self._finish()

    def __repr__(self) -> str:
        return f"<Daemon {self.runner!r}>"


def build_node(
    config: DaemonConfig,
    storage: Storage,
    dice: SystemDice,
    clock: Clock,
    bound: list[Endpoint],
) -> Node:
    """The pure rooms joined, from what is configured and what is on disk. Raises StartupError."""
    ports = {endpoint.listener: endpoint.port for endpoint in bound}
    advertised = tuple(
        endpoint._replace(
            host=endpoint.host or socket.getfqdn(), port=endpoint.port or ports.get(endpoint.listener, 0)
        )
        for endpoint in config.advertised_listeners
    )
    listener_name = config.controller_listener_names[0]
    static = VoterSet.from_static(listener_name, config.quorum_voters) if config.quorum_voters else NO_VOTERS
    durable = storage.durable_state(static)
    check_voters(config)
    raft_config = RaftConfig(
        node_id=config.node_id,
        directory_id=storage.directory.directory_id,
        cluster_id=storage.directory.cluster_id,
        listeners=advertised,
        listener_name=listener_name,
        bootstrap_servers=config.quorum_bootstrap_servers,
        election_timeout_ms=config.quorum_election_timeout_ms,
        fetch_timeout_ms=config.quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.quorum_election_backoff_max_ms,
        request_timeout_ms=config.quorum_request_timeout_ms,
        retry_backoff_ms=config.quorum_retry_backoff_ms,
        fetch_max_bytes=config.quorum_fetch_max_bytes,
        fetch_snapshot_max_bytes=config.quorum_fetch_snapshot_max_bytes,
        auto_join=config.quorum_auto_join,
    )
    settings = ControllerSettings(
        cluster_id=storage.directory.cluster_id,
        node_id=config.node_id,
        default_replication_factor=config.default_replication_factor,
        num_partitions=config.num_partitions,
        session_timeout_ms=config.broker_session_timeout_ms,
        max_idle_interval_ms=config.metadata_max_idle_interval_ms,
        leader_rebalance=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=config.leader_imbalance_check_interval_ms,
        unclean_election_check_interval_ms=config.unclean_leader_election_interval_ms,
        topic_deletion=config.delete_topic_enable,
        unstable_features=config.unstable_feature_versions_enable,
        unstable_apis=config.unstable_api_versions_enable,
        static_config=config.node_config,
        static_voter_ids=tuple(config.quorum_voters),
    )
    core = RaftCore(raft_config, durable, dice, fetches=Purgatory(), appends=Purgatory())
    context = Context(
        Image(), clock.now_ms(), settings, BrokerHeartbeats(config.broker_session_timeout_ms), dice
    )
    identity = Identity(config.node_id, storage.directory.cluster_id, dice.uuid(), advertised, listener_name)
    bootstrap = storage.bootstrap if storage.bootstrap is not None else default_bootstrap_records()
    return Node(identity, core, context, bootstrap, storage.snapshot())


def check_voters(config: DaemonConfig) -> None:
    """A controller of a static quorum is one of its voters, as Kafka wants it. Raises StartupError."""
    if config.quorum_voters and config.node_id not in config.quorum_voters:
        voters = ", ".join(map(str, sorted(config.quorum_voters)))
        raise StartupError(
            f"controller.quorum.voters names {voters}, and not this node, {config.node_id}: "
            "put it there, in the files of all controllers, or correct node.id"
        )


def limits(config: DaemonConfig) -> Limits:
    """The limits of a configuration; what a process may not open is no limit of its own."""
    defaults = Limits()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        soft = min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    buffered = config.queued_max_request_bytes
    return Limits(
        max_frame_bytes=config.socket_request_max_bytes,
        max_connections=min(config.max_connections, max(64, soft - 128)),
        max_connections_per_ip=config.max_connections_per_ip,
        max_in_flight=config.queued_max_requests,
        max_buffered_bytes=buffered if buffered > 0 else defaults.max_buffered_bytes,
        idle_ms=config.connections_max_idle_ms,
    )
