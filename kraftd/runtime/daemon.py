"""The daemon: start, run until a signal or a failure, stop.

`run` is what `kraftd start` calls. The order of starting: bind the listeners (so that a port in use costs
nothing), open security and the directory, build the nodes, accept. Replay goes on while requests are
answered.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import uvloop

from kraftd.config import DaemonConfig
from kraftd.controller.configs.loggers import LogLevels
from kraftd.controller_node.node import Node
from kraftd.host.storage import Storage, open_storage
from kraftd.host.upkeep.high_watermark_keeper import HighWatermarkKeeper
from kraftd.log.disk import RealDisk
from kraftd.log.errors import CheckpointMissing, StorageError
from kraftd.metadata.state import BROKER_RESOURCE
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.raft.events import ShutdownRequested, Started
from kraftd.raft.replica import CommittedIsLost
from kraftd.runtime.assembly import (
    StartupError,
    announced,
    build_keeper,
    build_node,
    limits,
    make_security,
)
from kraftd.runtime.clock import Clock
from kraftd.runtime.connections.acceptor import Acceptor
from kraftd.runtime.connections.binding import bind, bind_metrics
from kraftd.runtime.entry_points import EntryPointError
from kraftd.runtime.file_modes import START_FILES, wider_files, wider_modes
from kraftd.runtime.garbage import GarbageCollections
from kraftd.runtime.peers.peer_watch import CannotJoin, QuorumLives
from kraftd.runtime.policies import load_policies
from kraftd.runtime.randomness import SystemRandomness
from kraftd.runtime.reporting import logs
from kraftd.runtime.runner import Runner
from kraftd.runtime.security.tls_watch import TlsWatch
from kraftd.runtime.security.token_refresh import TokenRefresh
from kraftd.runtime.stop_limit import StopWatch
from kraftd.types import Endpoint, uuid_text

if TYPE_CHECKING:
    from kraftd.runtime.reporting.metrics_listener import Watch

STOPPING = "stopping"

Announce = Callable[[str, tuple[Endpoint, ...]], None]


CANNOT_JOIN = 3  # the exit code: the directory is of another cluster or node, or has lost records
QUORUM_LIVES = 4  # for `kraftd container`: format the new directory anew, under a fresh directory id

# The time for another voter to become leader, once all accepted requests are answered: an election takes tens
# of milliseconds, and without a majority it never ends.
SUCCESSOR_WAIT_MS = 2_000


def run(config: DaemonConfig, announce: Announce | None = None, *, rejoins: bool = False) -> int:
    """Run the daemon until it is stopped; 0 after a clean stop, 1 when something failed meanwhile.

    announce gets the cluster id and the bound endpoints once connections are accepted. With rejoins, a new
    voter that finds its quorum alive ends with QUORUM_LIVES.

    Raises StartupError, StorageError or OSError if it cannot start.
    """
    log = logs.configure(config.log_format, config.log_level, config.node_id)
    for warning in config.warnings:
        log.warning(warning)
    sockets = bind(config)
    metrics_socket = None
    loop = uvloop.new_event_loop()
    try:
        metrics_socket = bind_metrics(config)
        daemon = Daemon(config, sockets, loop, log, metrics_socket, rejoins=rejoins)
        return daemon.run(announce)
    finally:
        for sock, _ in sockets:
            sock.close()
        if metrics_socket is not None:
            metrics_socket.close()
        loop.close()


class Daemon:
    """One node with its storage, listeners and signals."""

    def __init__(
        self,
        config: DaemonConfig,
        sockets: list[tuple[socket.socket, Endpoint]],
        loop: asyncio.AbstractEventLoop,
        log: Any,
        metrics_socket: socket.socket | None = None,
        *,
        rejoins: bool = False,
    ) -> None:
        self.config = config
        self._rejoins = rejoins
        self.loop = loop
        self.log = log
        loop.set_exception_handler(self._loop_fault)
        self.clock = Clock()
        self.rng = SystemRandomness()
        self.exit_code = 0
        self._sockets = sockets
        self._metrics_socket = metrics_socket
        self.watch: Watch | None = None
        self._servers: list[Acceptor] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._begin_late: Callable[[], None] | None = None
        self._stopping = False
        self._signalled_before = False
        self._controller_stops = False
        self._shutdown_requested = False
        self._end: asyncio.Future[None] = loop.create_future()

        # The phases of a start, each once and in this order; `_serve` goes on.
        self._open_security()
        self.storage = self._open_storage()
        try:
            self._warn_of_findings()
            node = self._make_node()
            self._let_clients_log_in(node)
            self.runner = self._make_runner(node)
            self._add_other_nodes()
        except BaseException:
            self.storage.close()
            raise

    # -- the phases of a start, in their order

    def _open_security(self) -> None:
        self.security = make_security(self.config, self.clock)
        for note in self.security.notes:
            self.log.warning("OAUTHBEARER has no keys yet", why=note)
        self.tokens = TokenRefresh(self.security.token_sources, self.log)
        self.tokens.start()

    def _open_storage(self) -> Storage:
        disk, now_ms = RealDisk(), self.clock.now_ms()
        try:
            return open_storage(disk, self.config, now_ms, self.rng.uuid)
        except CheckpointMissing as missing:
            from kraftd.runtime.checkpoint_fetch import fetch_missing

            ports = [endpoint.port for _, endpoint in self._sockets]
            fetch_missing(missing, disk, self.config, now_ms, self.rng.uuid, ports, self.log, self.security)
        return open_storage(disk, self.config, now_ms, self.rng.uuid)

    def _warn_of_findings(self) -> None:
        """Log what was found in the directories, in their rights and in the configuration."""
        for note in self.storage.notes:
            self.log.warning("recovered", note=note)
        if not self.config.is_broker:  # which reports them itself
            for path, error in self.storage.directory.unreadable.items():
                self.log.error("a log directory cannot be read", directory=path, error=str(error))
        if self.config.first_election_without and self.storage.log.log_end:
            self.log.warning(
                "kraftd.first.election.without is set, and this node has a log",
                remedy="remove the key from the files of all controllers: with it, lost volumes may become a "
                "new cluster",
            )
        for wide in wider_modes([*self.config.data_dirs, self.config.audit_log]):
            self.log.warning(
                "other users have rights to this", path=wide.path, mode=f"{wide.mode:o}", remedy=wide.remedy
            )
        for directory in self.config.data_dirs:
            inside = wider_files(directory, PARTITION_DIRECTORY, START_FILES)
            if inside is not None:
                self.log.warning("other users have rights to files", **inside._asdict())

    def _make_node(self) -> Node:
        """The controller, by the configuration and the state on disk. Raises StartupError."""
        try:
            policies = load_policies(self.config, self.log)
        except EntryPointError as error:
            raise StartupError(str(error)) from error
        node = build_node(
            self.config,
            self.storage,
            self.rng,
            self.clock,
            [endpoint for _, endpoint in self._sockets],
            policies,
            self.security.authorizer,
            rejoins=self._rejoins,
        )
        node.context.log_levels = LogLevels(logs.KAFKAS_LEVELS[self.config.log_level], self._set_log_level)
        node.boundary.authorizations.allowances = self.config.audit_allowances
        self._warn_if_another_directory_votes(node)
        return node

    def _set_log_level(self, level: str) -> None:
        self.log.warning("the log level changes", root=level)
        self.log.set_level(level)

    def _let_clients_log_in(self, node: Node) -> None:
        """Connect the logins of the listeners with the users and tokens of the metadata."""
        guards = [guard for guard in self.security.listeners.values() if guard.settings.mechanisms]
        if not guards:
            return
        from kraftd.replica.credentials import NodeCredentials

        credentials = NodeCredentials(
            node.context,
            node.following,
            self.storage.bootstrap or (),
            self.storage.directory.cluster_id,
            self.config.delegation_token_secret_key,
            os.urandom(16),
        )
        for guard in guards:
            guard.begin_serving(credentials)

    def _make_runner(self, node: Node) -> Runner:
        """Connect the controller, its storage and its listeners."""
        return Runner(
            node,
            self.storage,
            self.config,
            limits(self.config),
            self.security,
            self.clock,
            self.log,
            self.loop,
            self._failed,
        )

    def _add_other_nodes(self) -> None:
        """Serve clients and be a broker in this process, where that is configured. Raises StartupError."""
        if self.config.client_listener_names:
            from kraftd.runtime.client_listeners import serve_clients

            serve_clients(self.runner, self.config, self.clock, self.rng)
        if self.config.is_broker:
            from kraftd.runtime.broker_listeners import serve_broker

            ports = {endpoint.listener: endpoint.port for _, endpoint in self._sockets}
            at = announced(self.config.broker_listeners, ports)
            try:
                serve_broker(self.runner, self.config, self.rng, at)
            except EntryPointError as error:
                raise StartupError(str(error)) from error

    def _warn_if_another_directory_votes(self, node: Node) -> None:
        """Log that a node's id votes with another directory: nothing else explains why the node does not vote
        (KIP-853).
        """
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
        """Serve until the end; returns the exit code."""
        return self.loop.run_until_complete(self._serve(announce))

    async def _serve(self, announce: Announce | None) -> int:
        # All in one run of the loop: between two runs, uvloop loses signals.
        self._handle_signals()
        self._start_nodes()
        if self._metrics_socket is not None:
            await self._start_watch(self._metrics_socket)
        await self._start_listeners()
        if announce is not None:
            announce(self.storage.directory.cluster_id, tuple(endpoint for _, endpoint in self._sockets))
        await self._end
        return await self._close()

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not with the loop's handlers, which it removes at its end: a second signal in the last moments
            # must not change how the process ends.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._signalled)
        signal.signal(signal.SIGHUP, self._hung_up)

    def _start_nodes(self) -> None:
        """Step the nodes for the first time, and start what works on their files."""
        self.runner.on_loaded = self._loaded
        self.runner.step(Started())
        self.runner.start_served()
        self.snapshots = build_keeper(self.runner, self.config)
        self.snapshots.start()
        interval_ms = self.config.replica_high_watermark_checkpoint_interval_ms
        self.high_watermark = HighWatermarkKeeper(self.runner, self.runner.node.core, interval_ms)
        self.high_watermark.start()

    async def _start_listeners(self) -> None:
        """Accept connections; some listeners wait for the ACLs (``early.start.listeners``)."""
        self.tls_watch = TlsWatch(
            self.security, self.loop, self.log, self.config.node_config, self._dynamic_configs
        )
        early = {name.upper() for name in self.config.early_start_listeners}
        late = []
        for sock, endpoint in self._sockets:
            if self.security.authorizer is None or not early or endpoint.listener in early:
                await self._listen(sock, endpoint)
            else:
                late.append((sock, endpoint))
        if late:
            self._begin_late = lambda: self._listen_late(late)

    def _dynamic_configs(self) -> Mapping[str, str]:
        """The dynamic configs of this node alone."""
        return self.runner.node.image.config(BROKER_RESOURCE, str(self.config.node_id))

    async def _listen(self, sock: socket.socket, endpoint: Endpoint) -> None:
        """Accept connections of a listener."""
        make = self.runner.connections.factory(endpoint.listener)
        guard = self.security.listeners.get(endpoint.listener)
        sock.listen(self.config.socket_listen_backlog_size)
        server = Acceptor(
            self.loop,
            sock,
            make,
            self.runner.connections,
            None if guard is None else guard.tls,
            self.config.ssl_handshake_timeout_ms,
            partial(self.runner.logins.handshake_failed, endpoint.listener),
            pool=self.runner.handshakes,
            listener=endpoint.listener,
            admission=self.runner.admission,
        )
        self._servers.append(server)
        self.log.info("listening", listener=endpoint.listener, host=endpoint.host, port=endpoint.port)

    def _listen_late(self, late: list[tuple[socket.socket, Endpoint]]) -> None:
        """Accept connections of the listeners that waited for the ACLs."""
        for sock, endpoint in late:
            task = self.loop.create_task(self._listen(sock, endpoint))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _start_watch(self, sock: socket.socket) -> None:
        from kraftd.runtime.reporting.metrics_listener import Watch

        self.watch = Watch(self.config, self.runner, self.snapshots, lambda: self._stopping)
        await self.watch.start(sock)
        host, port = sock.getsockname()[:2]
        self.log.info("metrics are served", host=host, port=port)

    def _signalled(self, number: int, _frame: object) -> None:
        if self._signalled_before:
            # A third changes nothing, and handlers that interrupt each other without end exhaust the stack.
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, signal.SIG_IGN)
        self._signalled_before = True
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.stop, signal.Signals(number).name)

    def _hung_up(self, _number: int, _frame: object) -> None:
        """Handle SIGHUP: a lost terminal ends nothing, and the audit file is reopened after a rotation."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._reopen)

    def _reopen(self) -> None:
        try:
            self.runner.audit.reopen()
        except OSError as error:
            self.log.error("the audit stream cannot be opened", error=str(error))

    def stop(self, why: str = "asked to") -> None:
        """Accept nothing more, answer requests in flight, then end; on a second call at once."""
        if self._stopping:
            self._finish()
            return
        self._stopping = True
        self.log.info("stopping", why=why)
        self.runner.after_step = self._idle
        limit_ms = self.config.shutdown_timeout_ms
        StopWatch(self.runner, limit_ms, self.loop.call_later, self.log, self._finish).start()
        self.runner.stop_served()
        self._idle()

    def _stop_controller(self) -> None:
        """Have the controller take no more work, once the other nodes of the process have ended."""
        self._controller_stops = True
        self.runner.node.stop()
        if self._alone:
            for server in self._servers:
                server.close()
            for connection in self.runner.connections:
                connection.stop_reading()

    def _idle(self) -> None:
        """After each step while stopping: end if all requests are answered and the core is shut down."""
        runner = self.runner
        if not self._controller_stops:
            if not runner.served_have_ended:
                return
            self._stop_controller()
        if runner.shutdown_completed:
            self._finish()
        elif (
            not self._shutdown_requested
            and not runner.node.decisions.busy
            and not (self._alone and any(connection.waiting for connection in runner.connections))
        ):
            self._shutdown_requested = True
            wait_ms = min(self.config.shutdown_timeout_ms, SUCCESSOR_WAIT_MS)
            self.loop.call_soon(runner.step, ShutdownRequested(wait_ms))

    @property
    def _alone(self) -> bool:
        """Return whether no other voter is needed for commits in flight, and none must be notified of the
        end. Only then may reading stop.
        """
        core = self.runner.node.core
        return core.voters.ids == [self.config.node_id]

    def _finish(self) -> None:
        if not self._end.done():
            self._end.set_result(None)

    async def _close(self) -> int:
        runner = self.runner
        self.snapshots.stop()
        self.high_watermark.stop()
        self.tls_watch.stop()
        self.tokens.stop()
        if self.watch is not None:
            self.watch.close()
        for server in self._servers:
            server.abort()
        runner.connections.close_all(STOPPING)
        for _ in range(3):  # let the transports flush
            await asyncio.sleep(0)
        runner.stop()
        try:
            self.high_watermark.write()
            runner.close_served()
            self.storage.close()
        except Exception as error:
            self.log.critical("the log could not be closed", error=str(error))
            return 1
        self.log.info("the event loop", **runner.loop_hold_times.summary())
        self.log.info("stopped", exit_code=self.exit_code)
        return self.exit_code

    def _loaded(self) -> None:
        """Once the metadata is loaded, begin what had to wait for it."""
        self.runner.on_loaded = None
        if self._begin_late is not None and not self._stopping:
            self._begin_late()
        garbage = GarbageCollections(self.loop.call_soon, self.runner.loop_hold_times.note)
        garbage.begin()
        if not self._stopping:
            self.runner.after_step = garbage.look

    def _loop_fault(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an exception that a callback did not handle; the loop goes on."""
        error = context.get("exception")
        self.log.error("an unexpected error in the event loop", what=context.get("message"), exc_info=error)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, QuorumLives):
            self.log.warning("the quorum lives, and this directory is new", found=str(error))
            self.exit_code = QUORUM_LIVES
            self._finish()
            return
        # These errors' texts are sufficient; any other needs a traceback.
        expected = isinstance(error, StorageError | CannotJoin | CommittedIsLost)
        trace = {} if expected else {"exc_info": error}
        self.log.critical("fatal: the process ends", error=str(error) or repr(error), **trace)
        self.exit_code = CANNOT_JOIN if isinstance(error, CannotJoin | CommittedIsLost) else 1
        self._finish()

    def __repr__(self) -> str:
        return f"<Daemon {self.runner!r}>"
