"""The broker of a simulated process: a combined node, with log directories on a disk of their own.

Node, executor and logs are the daemon's (`kraftd.broker_node`, `kraftd.host`, `kraftd.log_dirs`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kraftd.answers.effects import Answered, SendToNode, StopRequested
from kraftd.answers.settings import ClientSettings
from kraftd.broker_node.events import LogNotOpened, LogsOpened, LogTruncated
from kraftd.broker_node.lifecycle import Broker
from kraftd.broker_node.node import BrokerNode
from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.broker_node.routes import broker_registry
from kraftd.configdef.node import NodeConfig
from kraftd.ground.event import Event
from kraftd.host.broker_logs.broker_logs import Schedules
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.broker_executor import BrokerExecutor
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.resources import LogResources
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.cleaner import CleanerSettings
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.messages.alter_partition_request import AlterPartitionRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.replica_changes import ReplicaChanges
from kraftd.partition.effects import MarksMoved
from kraftd.raft.events import ShutdownRequested
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, AuditLine, LogLine
from kraftd.requests.events import ConnectionClosed, FramesReceived
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.files import CLUSTER_ID
from kraftd.simulation.processes.ports import VirtualThreads
from kraftd.simulation.processes.process import code_of
from kraftd.simulation.protocols import Host
from kraftd.types import Endpoint

CLIENTS = "PLAINTEXT"
DIRECTORIES = ("/data-1", "/data-2")
SCHEDULES = Schedules(500, 3_000, 1_000, 4_000, log_initial_task_delay_ms=500)
OFFSETS_PARTITIONS = 2
MAX_SESSION_ID = 2**31 - 9
RECORD_LOCK_MS = 2_000
DELIVERY_COUNT_LIMIT = 10
STATIC = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "1",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "producer.id.expiration.ms": str(2**31 - 1),  # idle by the wall clock, which jumps by days
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "200",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "2000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "200",
    "group.share.initialize.retry.interval.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(RECORD_LOCK_MS),
    "group.share.delivery.count.limit": str(DELIVERY_COUNT_LIMIT),
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.flush.scheduler.interval.ms": "500",
}


def directory_ids(host: Host) -> tuple[bytes, ...]:
    """The ids of the log directories, others on each data disk."""
    of_disk = host.data_disks.to_bytes(2, "big") + host.id.to_bytes(4, "big")
    return tuple(bytes([64 + number]) * 10 + of_disk for number in range(len(DIRECTORIES)))


class ClientWire:
    """The connections of clients to a process's broker. Closed ones stay in `closed`."""

    def __init__(self, process: ControllerProcess) -> None:
        self.closed: set[int] = set()
        self._process = process
        self._traffic = process.world.traffic

    def is_open(self, connection_id: int) -> bool:
        return connection_id not in self.closed

    def respond(self, call: Call, parts: list[Any]) -> None:
        self._traffic.answered(call.slot, parts)

    def flush(self) -> None: ...

    def answer(self, effect: Answer) -> None:
        self._traffic.answered(effect.slot, effect.parts)

    def close(self, connection_id: int, reason: str) -> None:
        self._process.world.checks.fail("L7", f"{self._process!r} hangs up on a client: {reason}")

    def mute(self, connection_id: int, is_muted: bool) -> None:
        raise TypeError("no quota is set")

    def line(self, effect: LogLine) -> None:
        getattr(self._process.ports.log, effect.level)(effect.text, **effect.fields)

    def audited(self, effect: AuditLine) -> None: ...

    def hand_over(self, call: Call) -> None:
        raise TypeError(f"no client causes {call!r}")

    def send_to_node(self, effect: SendToNode) -> None:
        process = self._process

        def then(answer: Any) -> None:
            process.broker.deliver(Answered(effect.request_id, answer))

        world = process.world
        if effect.listener:
            world.traffic.peers.send(process, effect)
            return
        carry = world.workload.carry_to_controller
        is_isr_change = type(effect.message) is AlterPartitionRequest
        delay_us = world.traffic.delay_of_isr_change_us() if is_isr_change else 0
        world.schedule.after(delay_us, carry, process, effect.destination, effect.message, then)


class WatchedDirectories(LogDirectories):
    """The log directories of a simulated broker. `failed`: logs that went offline with their directory."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.failed: dict[TopicPartition, DataLog] = {}

    def fail(self, path: str, error: StorageError) -> list[TopicPartition]:
        before = dict(self.logs)
        lost = super().fail(path, error)
        self.failed |= {key: before[key] for key in lost}
        return lost

    def all_logs(self) -> list[DataLog]:
        """The logs that are open, and those that were until their directory failed."""
        return list((self.failed | self.logs).values())


class BrokerSide(BrokerExecutor):
    """See the module. It stops before its controller does."""

    def __init__(self, process: ControllerProcess) -> None:
        self.process = process
        world, host = process.world, process.host
        self._ids = world.rng("broker", host.id, host.starts)
        disk = host.data_disk
        view = NodeView(process.node, process.files.storage)
        static = NodeConfig(STATIC)
        configs = TopicConfigs(static, host.id, view.context)
        for path in DIRECTORIES:
            disk.make_directory(path)
        own_ids = directory_ids(host)
        directories = self.directories = WatchedDirectories(
            LogResources(disk, draw=self._ids.below),
            [LogDirectory(path, own_id) for path, own_id in zip(DIRECTORIES, own_ids, strict=True)],
            lambda topic: configs.of(topic).log,
        )
        now_ms = host.clock.now_ms(world.schedule.now_us)

        def producers_of(topic: str, partition: int) -> ReplayedProducers:
            return ReplayedProducers(configs.of(topic).partition, now_ms)

        loader = LogLoader(directories, now_ms, producers_of)
        at = Endpoint(CLIENTS, f"n{host.id}", 9092)
        broker = Broker(
            host.id,
            CLUSTER_ID,
            self._ids.uuid(),
            (at,),
            own_ids,
            supported_features(),
            previous_epoch=-1 if loader.broker_epoch is None else loader.broker_epoch,
            heartbeat_interval_ms=500,
            registration_timeout_ms=3_600_000,
            directory_failure_timeout_ms=3_600_000,
        )
        node = BrokerNode(
            view,
            ClientSettings({CLIENTS: at}, stands_in_for_brokers=False),
            broker_registry,
            broker,
            static,
            lambda: self._ids.between(1, MAX_SESSION_ID),
            lambda: str(UUID(bytes=self._ids.uuid())),
        )
        process.node.image.replica_changes = ReplicaChanges(host.id)
        self._watch_marks(node)
        self._connections = ClientWire(process)
        super().__init__(
            node,
            view,
            process.files.log,
            directories,
            loader,
            SCHEDULES,
            disk,
            process.ports._replace(work_threads=DataThreads(process)),
            self._connections,
            lambda: self._ids.uuid().hex(),
            cleaner=CleanerSettings(log_cleaner_backoff_ms=500),
        )
        self._shutdown: ShutdownRequested | None = None
        self._stops_at_ms = 0

    # --- driving ---

    def _watch_marks(self, node: BrokerNode) -> None:
        moved, traffic = node.on_marks_moved, self.process.world.traffic

        def watched(hosted: Hosted, marks: MarksMoved) -> None:
            traffic.replicas.marks_moved(self.process, hosted, marks)
            traffic.transactions.marks_moved(self.process, hosted, marks)
            moved(hosted, marks)

        node.on_marks_moved = watched  # type: ignore[method-assign]

    def receive(self, connection_id: int, slot: int, frames: list[memoryview]) -> None:
        """Handle a client's requests."""
        self.deliver(FramesReceived(connection_id, slot, frames, CLIENTS, "client"))

    def close_connection(self, connection_id: int) -> None:
        """Handle that a client has closed its connection."""
        if connection_id not in self._connections.closed:
            self._connections.closed.add(connection_id)
            self.deliver(ConnectionClosed(connection_id))

    def deliver(self, event: Event) -> None:
        """Deliver an event, now or after a pause; not at all if the process is gone."""
        process = self.process
        if not process.asleep(self.deliver, event):
            if type(event) is ConnectionClosed:
                process.guarded(self.connection_lost, event.connection_id)
            else:
                process.guarded(self.step, event)

    def _step(self, event: Event) -> None:
        process, world = self.process, self.process.world
        if world.trace.echo is not None:
            world.trace.write(world.schedule.now_us, f"{process.id}: broker: {event!r}")
        world.trace.step(
            world.schedule.now_us, process.id, code_of(type(event)), 0, len(self.node.replicas), 0, 1
        )
        if type(event) is LogsOpened:
            for one in event.logs:
                log = self.logs.directories.logs.get((one.topic, one.partition))
                world.traffic.log_opened(process, log)
        elif type(event) is LogNotOpened:
            damaged = self.directories.damaged.get((event.topic, event.partition))
            if damaged is not None and event.is_damaged:  # else its disk has no room for a recovery
                world.traffic.partitions.called_damaged((event.topic_id, event.partition), str(damaged.error))
        elif type(event) is LogTruncated:
            world.trace.kinds["log truncated to its leader's"] += 1
        super()._step(event)

    # --- the stop ---

    def stop_first(self, event: ShutdownRequested) -> bool:
        """Begin to stop; return whether the controller must wait for that, half of its time at most."""
        if self._stops_at_ms:
            return self._shutdown is not None
        self._shutdown, now_ms = event, self.timer.now_ms()
        self._stops_at_ms = now_ms + event.timeout_ms
        self.timer.call_at(now_ms + event.timeout_ms // 2, self._go_on)
        self.step(StopRequested())
        return self._shutdown is not None

    def poll(self) -> None:
        super().poll()
        if self._shutdown is not None and self.node.has_ended:
            self._go_on()

    def _go_on(self) -> None:
        if self._shutdown is not None:
            self._shutdown = None
            left_ms = max(1, self._stops_at_ms - self.timer.now_ms())
            self.process.deliver(ShutdownRequested(left_ms))

    def __repr__(self) -> str:
        return f"<BrokerSide of {self.process!r}: {self.node!r}>"


class DataThreads(VirtualThreads):
    """Threads that flush, open and read logs: each job takes as long as a sync does."""

    def delay_us(self) -> int:
        return self._process.host.sync_delay_us()
