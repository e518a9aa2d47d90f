"""A controller on an asyncio loop: connects sockets, timers and threads to the host's executor.

For each event it performs the effects in order, then flushes every connection with answers once. It adds to
the executor the parts of a real machine: sockets, threads, and measured times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns, thread_time_ns
from typing import TYPE_CHECKING, Any, cast

from kraftd.answers.effects import StopRequested
from kraftd.config import DaemonConfig
from kraftd.configdef.node import NodeConfig
from kraftd.controller_node import effects
from kraftd.controller_node.node import Node
from kraftd.ground.ticks import next_tick_ms
from kraftd.ground.windowed_rate import SAMPLE_COUNT, WINDOW_MS
from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.host.executors.node_executor import NodeExecutor
from kraftd.host.ports import Ports
from kraftd.host.snapshots.snapshot_download import SnapshotDownload
from kraftd.host.storage import Storage
from kraftd.metadata.state import BROKER_RESOURCE
from kraftd.net.connection import Connection
from kraftd.net.connection_rates import ConnectionRates, address_quota
from kraftd.net.limits import Limits
from kraftd.net.listener import Connections
from kraftd.net.outbound import Times
from kraftd.requests.effects import AuditLine
from kraftd.requests.events import ConnectionClosed, FramesReceived
from kraftd.runtime.clock import Clock
from kraftd.runtime.connections.admission import Admission
from kraftd.runtime.connections.handshake_pool import HandshakePool
from kraftd.runtime.connections.logins import Logins
from kraftd.runtime.connections.wire import DISK_FULL, ControllerWire
from kraftd.runtime.peers.address_watch import AddressWatch
from kraftd.runtime.peers.foreign_cluster import ForeignCluster
from kraftd.runtime.peers.leader_sight import LeaderSight
from kraftd.runtime.peers.peer_hosts import PeerHosts
from kraftd.runtime.peers.peer_watch import PeerWatch
from kraftd.runtime.peers.sending import ControllerPeer, LoopWiring, QuorumPeers, Road
from kraftd.runtime.reporting.audit_stream import AuditStream
from kraftd.runtime.reporting.idle import IdleRatio
from kraftd.runtime.reporting.loop_hold_times import LoopHoldTimes
from kraftd.runtime.security.assembly import Security
from kraftd.runtime.threads import LoopThreads, RealDiskThread, run_together
from kraftd.security.principals import Principal

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.log_dirs.cleaner import LogCleaner
    from kraftd.log_dirs.full_directories import FullDirectories
    from kraftd.runtime.late_code import LateCode
    from kraftd.runtime.served_node import ServedNode

SWEEP_MS = 5_000


class LoopTimer:
    """The clock and the event loop, as a host sees them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self.now_ms = clock.now_ms
        self.wall_ahead_ms = clock.wall_ahead_ms
        self.call_soon = loop.call_soon

    def call_at(self, at_ms: int, action: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        return self._loop.call_later(max(0, at_ms - self.now_ms()) / 1000, action, *arguments)


def connection_windows(config: DaemonConfig) -> tuple[int, int]:
    """The length of a sample of the rates of connections, in ms, and how many count, by a broker's file."""
    if not config.is_broker:
        return WINDOW_MS, SAMPLE_COUNT
    static = NodeConfig.of(config.node_config)
    return 1_000 * static.integer("quota.window.size.seconds"), static.integer("quota.window.num")


def _connection_rates(config: DaemonConfig, node: Node) -> ConnectionRates:
    """The rates of new connections: those of the file, of the node's dynamic configs, and of addresses."""
    window_ms, sample_count = connection_windows(config)
    rates = ConnectionRates(
        config.max_connection_creation_rate,
        config.connection_creation_rates,
        among_brokers=config.listener_among_brokers,
        window_ms=window_ms,
        sample_count=sample_count,
    )
    rates.of_address = lambda host: address_quota(node.image.quotas, host)
    own, every = (BROKER_RESOURCE, str(node.core.key.id)), (BROKER_RESOURCE, "")
    rates.dynamic = lambda: (node.image.config(*own), node.image.config(*every))
    return rates


class Runner(NodeExecutor):
    """Drives one node on the running loop. `failed` is called once, with the error that must end
    the process.
    """

    def __init__(
        self,
        node: Node,
        storage: Storage,
        config: DaemonConfig,
        limits: Limits,
        security: Security,
        clock: Clock,
        log: Any,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.clock = clock
        self.loop = loop
        self.loop_hold_times = LoopHoldTimes(log)
        self.wire = ControllerWire()
        self.syncs = RealDiskThread("kraftd-sync", loop.call_soon_threadsafe, self.fail)
        self._writes = RealDiskThread("kraftd-download", loop.call_soon_threadsafe, self.fail)
        ports = Ports(LoopTimer(loop, clock), self.syncs, self._writes, LoopThreads(loop), log, failed)
        super().__init__(node, storage, SnapshotDownload(storage.disk, storage.log), self.wire, ports)
        self.peer_hosts = PeerHosts(node, loop, ports.timer)
        self.connections = Connections(self, limits, loop.call_soon, self.peer_hosts.__contains__)
        rates = _connection_rates(config, node)
        self.admission = Admission(loop, clock.now_ms, rates, self.peer_hosts.__contains__)
        self.connections.counts.dynamic = rates.dynamic
        self.handshakes = HandshakePool(loop, self.peer_hosts.__contains__)
        self.audit = AuditStream(config.audit_log, node.identity.node_id, log)
        self.served: list[ServedNode] = []  # the nodes beside the controller
        self.log_cleaner: LogCleaner | None = None  # of the broker among them
        self.full_directories: FullDirectories | None = None  # of that broker
        self.late_code: LateCode | None = None  # likewise, if it starts without that
        self._by_listener: dict[str, ServedNode] = {}
        self.security = security
        self.logins = Logins(
            self.security,
            self._serve,
            loop,
            clock,
            log,
            timeout_ms=config.authentication_timeout_ms,
            failure_delay_ms=config.connection_failed_authentication_delay_ms,
            audit=lambda event: self.audit.write(event, clock.wall_ms(), shown=False),
        )
        self._handshake_timeout_ms = config.ssl_handshake_timeout_ms
        self.wiring = LoopWiring(loop, clock, security.client_tls, self._handshake_timeout_ms)
        self._wirings = [self.wiring]
        times, node_id = Times(config.quorum_request_timeout_ms), node.identity.node_id
        self.troubles = PeerTroubles(node_id, node.identity.cluster_id)
        self.troubles.was_leader = lambda: node.leadership.last_leader_id == node_id
        self.troubles.own_addresses = frozenset(f"{one.host}:{one.port}" for one in node.identity.endpoints)
        node.core_answers.troubles = self.troubles.answer
        self.peer_watch = PeerWatch(self.troubles, node.core, clock, log, loop, self.fail, self.audited)
        self.quorum = self.wire.quorum = QuorumPeers(
            node_id, self.wiring, times, self.step, self.received, log, self.troubles, self.security.login
        )
        self.foreign = ForeignCluster(node_id, Road(self.wiring, self.security.login), times, self.troubles)
        self.quorum.on_foreign_node = self.foreign.ask
        self.controller = self.wire.controller = ControllerPeer(
            node_id, self.wiring, times, self.step, self.security.login
        )
        self.addresses = AddressWatch(node, self.wiring, clock, log, loop, self.security.login)
        node.core_answers.addresses = self.addresses.check.lines
        self.sight = LeaderSight(node, self.wiring, clock, loop, self.security.login)
        self.idle = IdleRatio(monotonic_ns, thread_time_ns)
        self._plan_sweep()

    def step(self, event: Any, began_ns: int = 0) -> None:
        """Step the node with an event and perform the effects; `began_ns` is the current time, if known."""
        began_ns = began_ns or monotonic_ns()
        super().step(event)
        for one in self.served:
            one.executor.poll()
        now_ns = monotonic_ns()
        if self.wire.answered_calls:
            self._count_answers(began_ns, now_ns)
        self.loop_hold_times.note(event, now_ns - began_ns)

    def audited(self, effect: AuditLine) -> None:
        self.audit.write(effect, self.node.context.wall_ms)  # of the step that caused it

    def _count_answers(self, began_ns: int, now_ns: int) -> None:
        answered = self.wire.answered_calls
        self.node.boundary.stats.answered(answered, began_ns, now_ns)
        answered.clear()

    @property
    def road_to_controllers(self) -> Road:
        """How this process connects to the controllers."""
        return Road(self.wiring, self.security.login)

    def roads(self) -> dict[str, Road]:
        """The ways to the controllers and, by their listeners, to the brokers."""
        roads = {"": self.road_to_controllers}
        for listener, own in self.security.at_brokers.items():
            wiring = LoopWiring(self.loop, self.clock, own.tls, self._handshake_timeout_ms)
            self._wirings.append(wiring)
            roads[listener] = Road(wiring, own.login)
        return roads

    def serve(self, node: ServedNode) -> None:
        """Also serve that node's listeners, beside the controller's."""
        self.served.append(node)
        self._by_listener |= dict.fromkeys(node.listeners, node)

    def start_served(self) -> None:
        """Begin what those nodes do by themselves."""
        for one in self.served:
            one.executor.start()

    def stop_served(self) -> None:
        """Have those nodes finish what others must know of, before the controller stops."""
        for one in self.served:
            one.executor.step(StopRequested())

    def close_served(self) -> None:
        """Close what those nodes have open. Blocks."""
        for one in self.served:
            one.executor.close_files(run_together)

    @property
    def led_count(self) -> int:
        """How many partitions those nodes lead."""
        brokers = [cast("BrokerNode", one.node) for one in self.served if one.node.is_broker]
        return sum(one.replicas.led_count() for one in brokers)

    @property
    def served_have_ended(self) -> bool:
        """Return whether the controller may stop."""
        return all(one.node.has_ended for one in self.served)

    def piece_read(self, effect: effects.AnswerSnapshot, data: bytes) -> None:
        super().piece_read(effect, data)
        self._count_answers(0, monotonic_ns())

    def stop(self) -> None:
        """Stop timers and syncs. The caller closes the log."""
        super().stop()
        self._sweeper.cancel()
        self.audit.close()
        self.peer_watch.stop()
        self.addresses.stop()
        self.peer_hosts.stop()
        self.handshakes.stop()
        self.admission.stop()
        self.foreign.stop()
        self.sight.stop()
        for wiring in self._wirings:
            wiring.stop()
        self.quorum.outbound.close()
        self.controller.outbound.close()
        for one in self.served:
            one.end()
        self.syncs.stop()
        self._writes.stop()

    def _plan_sweep(self) -> None:
        at_ms = next_tick_ms(self.clock.now_ms(), SWEEP_MS)
        self._sweeper = self.ports.timer.call_at(at_ms, self._sweep)

    def _sweep(self) -> None:
        self._plan_sweep()
        self.connections.sweep(self.clock.now_ms())
        self.admission.rates.sweep(self.clock.now_ms())
        self.logins.limited_log.end_period()
        self.logins.end_revoked(self.connections)
        left_out = self.node.boundary.authorizations.end_period()
        for one in self.served:
            left_out += one.node.boundary.authorizations.end_period()
        omitted = self.logins.audit.end_period()
        if omitted:
            self.log.warning("more authentications were not audited", events=omitted)
        if left_out:
            self.log.warning("more authorizations were not logged", decisions=left_out)
        self.idle.sample()

    # -- connections

    def connection_admitted(self, connection: Connection) -> None:
        self.logins.admitted(connection)

    def frames_received(self, connection: Connection, first_slot: int, frames: list[memoryview]) -> None:
        self.logins.frames_received(connection, first_slot, frames)

    def _serve(
        self, connection: Connection, first_slot: int, frames: list[memoryview], principal: Principal
    ) -> None:
        """Pass the requests of an authenticated peer to the node."""
        self.wire.by_id[connection.id] = connection
        now_ns = monotonic_ns()
        event = FramesReceived(
            connection.id, first_slot, frames, connection.listener, connection.host, now_ns, principal
        )
        node = self._by_listener.get(connection.listener)
        if node is None:
            self.step(event, now_ns)
        else:
            node.frames_received(event)

    def connection_lost(self, connection: Connection, reason: str | None) -> None:
        self.logins.lost(connection)
        if reason not in (None, "stopping", DISK_FULL):  # the host reports a full disk itself
            peer = f"{connection.peer[0]}:{connection.peer[1]}"
            self.logins.limited_log.warn(
                "connection closed", peer=peer, listener=connection.listener, reason=reason
            )
        if self.wire.by_id.pop(connection.id, None) is not None:
            self.step(ConnectionClosed(connection.id))
            for one in self.served:
                one.connection_lost(connection.id)

    def __repr__(self) -> str:
        return f"<Runner of {self.node!r}, {self.connections!r}>"
