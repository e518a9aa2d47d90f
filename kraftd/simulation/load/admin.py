"""Requests of brokers and administrators to controllers, and the check that the answers fit one order
(C2-C7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.destination import Destination
from kraftd.messages import alter_partition_request as alter
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import LATEST_PRODUCTION, METADATA_VERSION, allows_transactions
from kraftd.metadata.state import BROKER_RESOURCE
from kraftd.raft.events import RequestReceived
from kraftd.simulation.checkers.control.controllers import (
    ConfigOperation,
    ControllerChecker,
    Registered,
    TopicOperation,
)
from kraftd.simulation.load.access import AccessOperations
from kraftd.simulation.load.workload import Call, Workload
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.files import CLUSTER_ID, LISTENER
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.schedule import MS, SECOND
from kraftd.wire.api import valid_versions
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from kraftd.wire.table import api_key

BROKERS = (1001, 1002, 1003, 1004)
NAMES = tuple(f"topic-{i}" for i in range(6))
ANSWER_WAIT_US = 4 * SECOND
TOPIC_CONFIG = 2
CLUSTER_KEYS = ("message.max.bytes", "log.retention.ms")
OF_A_NODE = "of a node"  # a request of a controller or of a broker: it asks again without an answer
Then = Callable[[Any], None]  # called with the answer, or None if none came in time


class Broker:
    """A fake broker: registers, sends heartbeats, restarts."""

    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.epoch = -1
        self.incarnation = b""
        self.former_epoch = -1  # of the registration before
        self.shuts_down = False
        self.is_asking = False
        self.silent_until_us = 0


class AdminWorkload(Workload):
    """Topics are made and deleted, ISRs shrink and grow, configs change; brokers die and return."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.checker = ControllerChecker(world)
        self.brokers = [Broker(broker_id) for broker_id in BROKERS]
        self.supported = supported_features()
        self._waiting: dict[int, tuple[Call, Process]] = {}
        self._written = 0  # values of configs
        self._acts |= {
            "create topic": self.append,
            "delete topic": self._delete_topic,
            "alter configs": self._alter_configs,
            "set cluster config": self._set_cluster_config,
            "describe configs": self._describe_configs,
            "alter partition": self._alter_partition,
            "producer ids": self._allocate,
            "broker restarts": self._restart_broker,
            "broker shuts down": self._shut_broker_down,
            "stale heartbeat": self._stale_heartbeat,
            "upgrade metadata.version": self._upgrade_metadata_version,
            "transaction": self._transaction,
        }
        self._table = ["create topic"] * 12 + ["delete topic"] * 6 + ["alter configs"] * 6
        self._table += ["alter partition"] * 12 + ["producer ids"] * 3
        self._table += ["broker restarts", "broker shuts down", "stale heartbeat", "transaction"]
        self._table += ["upgrade metadata.version"]
        self._table += ["client fetch"] * 6 + ["snapshot"] * 2 + ["stranger"] * 2
        self._table += ["add voter", "remove voter", "resign", "describe"]
        self._table += ["set cluster config"] * 3 + ["describe configs"] * 4
        self.access = AccessOperations(
            world, self.rng, self.checker.records, self._any_process, self._send_request
        )
        self._acts |= self.access.acts
        self._table += self.access.table

    def start(self) -> None:
        super().start()
        for broker in self.brokers:
            self.world.schedule.after(self.rng.between(1, SECOND), self._beat, broker)

    # --- requests ---

    def ask(self, process: Process, message: Message, version: int, then: Then) -> None:
        """Ask one controller for something whose answer no check needs."""
        self._send_request(process, OF_A_NODE, message, version, then)

    def _send_request(self, process: Process, kind: str, message: Message, version: int, then: Then) -> None:
        """Send a request to one controller; `then` gets the answer, or None once none is expected."""
        self._number += 1
        call = Call(self._number, kind, message, then)
        self._waiting[call.number] = call, process
        must_answer = self.world.liveness.agreed and kind != OF_A_NODE
        self.world.schedule.after(ANSWER_WAIT_US, self._expire, call.number, must_answer)
        process.deliver(RequestReceived(call, message, version, LISTENER))

    def answered(self, process: Process, call: Call, message: Any) -> None:
        self._waiting.pop(call.number, None)
        super().answered(process, call, message)

    def lost(self, process: Process, call: Call) -> None:
        self._expire(call.number)

    def _expire(self, number: int, must_answer: bool = False) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            if must_answer:
                self.world.checks.fail("L2", f"{waiting[0]!r} has had no answer of {waiting[1]!r}")
            call = waiting[0]
            then, call.then = call.then, None
            if then is not None:
                then(None)

    def process_ended(self, process: Process) -> None:
        super().process_ended(process)
        for number in [number for number, (_, at) in self._waiting.items() if at is process]:
            self._expire(number)

    @property
    def under_way(self) -> list[Any]:
        return [
            one for one, (call, _) in self._waiting.items() if call.kind in ("create topic", "delete topic")
        ]

    def send_to_controller(self, process: ControllerProcess, effect: Any) -> None:
        """Carry a controller's own request."""

        def then(answer: Any) -> None:
            process.controller_answered(effect.request_id, answer)

        self.carry_to_controller(process, effect.destination, effect.message, then, 0)

    def carry_to_controller(
        self,
        process: ControllerProcess,
        destination: Destination,
        message: Message,
        then: Then,
        version: int | None = None,
    ) -> None:
        """Carry a request of a node to the node that it believes is the active controller."""
        target, cut = self.cluster.hosts[destination.node_id].process, self.world.network.cut
        newest = valid_versions(api_key(message))[1] if version is None else version

        def answered(answer: Any) -> None:
            if not process.ended:
                self.world.schedule.after(1 * MS, then, answer)

        if target is None or (process.id, target.id) in cut or (target.id, process.id) in cut:
            answered(None)
        else:
            self.world.schedule.after(1 * MS, self._carry, target, message, newest, answered)

    def _carry(self, target: Process, message: Message, version: int, then: Then) -> None:
        if target.ended:
            then(None)
        else:
            self._send_request(target, OF_A_NODE, message, version, then)

    # --- topics ---

    def append(self) -> bool:
        """Create a topic; the liveness check uses it, too."""
        name = self.rng.choice(NAMES)
        topic = CreatableTopic(name, self.rng.between(1, 3), self.rng.between(1, 3))
        return self._topic("create topic", name, CreateTopicsRequest([topic], 1000), 7)

    def _delete_topic(self) -> bool:
        name = self.rng.choice(NAMES)
        return self._topic("delete topic", name, DeleteTopicsRequest([DeleteTopicState(name)], (), 1000), 6)

    def _topic(self, kind: str, name: str, message: Message, version: int) -> bool:
        process = self._any_process()
        if process is None:
            return False
        operation = TopicOperation(kind == "create topic", name, self.world.schedule.now_us)

        def then(answer: Any) -> None:
            code = None
            if answer is not None:
                one = answer.topics[0] if kind == "create topic" else answer.responses[0]
                code, operation.topic_id = one.error_code, one.topic_id
            self.checker.topic_answered(process, operation, code)

        self.checker.operations.append(operation)
        self._send_request(process, kind, message, version, then)
        return True

    def _alter_configs(self) -> bool:
        process = self._any_process()
        if process is None:
            return False
        value = str(self.rng.between(1, 9) * 3_600_000)
        change = AlterableConfig("retention.ms", self.rng.choice((0, 0, 1)), value)
        resource = AlterConfigsResource(TOPIC_CONFIG, self.rng.choice(NAMES), [change])
        self._send_request(
            process, "alter configs", IncrementalAlterConfigsRequest([resource]), 1, lambda answer: None
        )
        return True

    def _set_cluster_config(self) -> bool:
        process = self._any_process()
        if process is None:
            return False
        key = self.rng.choice(CLUSTER_KEYS)
        self._written += 1
        value = str(1_000_000 + self._written)
        operation = ConfigOperation(key, value, self.world.schedule.now_us)
        self.checker.config_operations.append(operation)

        def then(answer: Any) -> None:
            self.checker.config_written(operation, None if answer is None else answer.responses[0].error_code)

        resource = AlterConfigsResource(BROKER_RESOURCE, "", [AlterableConfig(key, 0, value)])
        self._send_request(process, "alter configs", IncrementalAlterConfigsRequest([resource]), 1, then)
        return True

    def _describe_configs(self) -> bool:
        """Describe configs, mostly on leaders; every controller answers."""
        process = self._any_process()
        if process is None:
            return False
        key = self.rng.choice(CLUSTER_KEYS)
        operation = ConfigOperation(key, None, self.world.schedule.now_us)
        self.checker.config_operations.append(operation)

        def then(answer: Any) -> None:
            if answer is not None and not answer.results[0].error_code:
                shown = {one.name: one.value for one in answer.results[0].configs}
                self.checker.config_read(process, operation, shown.get(key) or "")

        resource = DescribeConfigsResource(BROKER_RESOURCE, "", (key,))
        self._send_request(process, "describe configs", DescribeConfigsRequest([resource]), 4, then)
        return True

    # --- brokers ---

    def _beat(self, broker: Broker) -> None:
        """Every half a second, send a heartbeat, or a registration if there is none yet."""
        world = self.world
        if not world.ending:
            world.schedule.after(self.rng.between(300 * MS, 700 * MS), self._beat, broker)
        process = self.cluster.leader()
        if process is None or broker.is_asking or broker.silent_until_us > world.schedule.now_us:
            return
        broker.is_asking = True
        if broker.epoch < 0:
            self._register(broker, process)
            return
        offset = world.committed.end if self.rng.chance(0.9) else 0
        message = BrokerHeartbeatRequest(broker.id, broker.epoch, offset, False, broker.shuts_down)
        was_stale = self.checker.records.is_stale(broker.id, broker.epoch)

        def then(answer: Any) -> None:
            broker.is_asking = False
            self.checker.refused(was_stale, answer, "a heartbeat")
            if answer is not None and broker.shuts_down and answer.should_shut_down:
                world.trace.kinds["broker was let go"] += 1
                self._restart(broker, self.rng.choice((1, 5)) * SECOND)
            if answer is not None and answer.error_code in (
                ErrorCode.STALE_BROKER_EPOCH,
                ErrorCode.BROKER_ID_NOT_REGISTERED,
            ):
                broker.epoch = -1

        self._send_request(process, "heartbeat", message, 1, then)
        world.trace.kinds["heartbeat"] += 1

    def _register(self, broker: Broker, process: Process) -> None:
        if not broker.incarnation:
            broker.incarnation = self.rng.uuid()
        incarnation = broker.incarnation
        message = BrokerRegistrationRequest(
            broker.id,
            CLUSTER_ID,
            incarnation,
            [Listener("PLAINTEXT", f"b{broker.id}", 9092, 0)],
            [Feature(name, low, high) for name, (low, high) in self.supported.items()],
            None,
            False,
            (
                bytes([1]) * 12 + broker.id.to_bytes(4, "big"),
            ),  # sent below 3.7-IV2 too, where it is not recorded
        )

        def then(answer: Any) -> None:
            broker.is_asking = False
            if answer is not None and not answer.error_code and incarnation == broker.incarnation:
                broker.epoch = answer.broker_epoch
                self.checker.registered(Registered(broker.id, incarnation, answer.broker_epoch))
                self.world.trace.kinds["broker registered"] += 1

        self._send_request(process, "register", message, 4, then)

    def _restart_broker(self) -> bool:
        self._restart(self.rng.choice(self.brokers), self.rng.choice((0, 1, 8)) * SECOND)
        return True

    def _restart(self, broker: Broker, away_us: int) -> None:
        if broker.epoch >= 0:
            broker.former_epoch = broker.epoch
        broker.epoch, broker.incarnation, broker.shuts_down = -1, b"", False
        broker.silent_until_us = self.world.schedule.now_us + away_us

    def _shut_broker_down(self) -> bool:
        """Send a broker's request to shut down: its partitions first get other leaders, if there are any."""
        broker = self.rng.choice(self.brokers)
        if broker.epoch < 0 or broker.shuts_down:
            return False
        broker.shuts_down = True
        return True

    def _stale_heartbeat(self) -> bool:
        """Send a late heartbeat of a broker's previous run."""
        broker, process = self.rng.choice(self.brokers), self.cluster.leader()
        if process is None or broker.former_epoch < 0:
            return False
        message = BrokerHeartbeatRequest(broker.id, broker.former_epoch, 0, False, False)
        was_stale = self.checker.records.is_stale(broker.id, broker.former_epoch)

        def then(answer: Any) -> None:
            self.checker.refused(was_stale, answer, "a late heartbeat")

        self._send_request(process, "stale heartbeat", message, 1, then)
        return True

    def _upgrade_metadata_version(self) -> bool:
        process = self.cluster.leader()
        if not isinstance(process, ControllerProcess) or not process.node.active:
            return False
        level = process.node.image.metadata_version
        if level >= LATEST_PRODUCTION:
            return False
        level = min(LATEST_PRODUCTION, level + self.rng.between(1, 8))
        update = FeatureUpdateKey(METADATA_VERSION, level, upgrade_type=1)

        def then(answer: Any) -> None:
            if answer is not None and not answer.error_code and not answer.results[0].error_code:
                self.checker.upgraded(level)

        self._send_request(process, "upgrade", UpdateFeaturesRequest(1000, [update]), 1, then)
        return True

    def _transaction(self) -> bool:
        """Two topics in a metadata transaction of several batches, which may be ended, aborted or left open.

        No request causes that in this version; a migration, or a controller of Apache Kafka, does.
        """
        process = self.cluster.leader()
        if not isinstance(process, ControllerProcess) or not process.node.active:
            return False
        image, rng = process.node.image, self.rng
        if not allows_transactions(image.metadata_version) or image.in_transaction:
            return False
        begin = VersionedRecord(BeginTransactionRecord("simulated"), 0)
        batches: list[list[VersionedRecord]] = [[begin]]
        for _ in range(2):
            name = f"in-transaction-{rng.below(1 << 30)}"
            batches.append([VersionedRecord(TopicRecord(name, rng.uuid()), 0)])
        ended = rng.chance(0.7)
        last = EndTransactionRecord() if ended else AbortTransactionRecord("simulated")
        batches.append([VersionedRecord(last, 0)])
        if rng.chance(0.5):
            process.crash_after_effects = rng.between(1, 8)
        return process.write(*batches)

    def _alter_partition(self) -> bool:
        """A partition's leader proposes another ISR, from what some controller knows: it may be stale."""
        alive = [host.process for host in self.cluster.alive()]
        process = self.rng.choice(alive) if alive and self.rng.chance(0.2) else self.cluster.leader()
        leader = self.cluster.leader()
        if not isinstance(process, ControllerProcess) or leader is None:
            return False
        image = process.node.image
        led = [
            (topic.id, index, state)
            for topic in image.topics.values()
            for index, state in topic.partitions.items()
            if state.leader in image.brokers and not self.world.traffic.leads_by_itself(state.leader)
        ]
        if not led:
            return False
        topic_id, index, state = self.rng.choice(led)
        members = [one for one in state.replicas if one == state.leader or self.rng.chance(0.7)]
        epochs = {one: image.brokers[one].epoch if one in image.brokers else -1 for one in members}
        if self.rng.chance(0.1):
            former = self.rng.choice(self.brokers)
            if former.id in epochs and former.former_epoch >= 0:
                epochs[former.id] = former.former_epoch
        is_stale = self.checker.records.is_stale
        was_stale = any(is_stale(one, epoch) for one, epoch in epochs.items())
        was_stale = was_stale or is_stale(state.leader, image.brokers[state.leader].epoch)
        partition = alter.PartitionData(
            index,
            state.leader_epoch,
            (),
            [alter.BrokerState(one, epochs[one]) for one in members],
            state.leader_recovery_state,
            state.partition_epoch,
        )
        topics = [alter.TopicData(topic_id, [partition])]
        message = alter.AlterPartitionRequest(state.leader, image.brokers[state.leader].epoch, topics)

        def then(answer: Any) -> None:
            if answer is None:
                return
            one = answer if answer.error_code else answer.topics[0].partitions[0]
            self.checker.refused(was_stale, one, "an ISR with a member")
            if not one.error_code:
                self.checker.isr_altered(topic_id, index, one.partition_epoch)
                self.world.trace.kinds["isr altered"] += 1

        self._send_request(leader, "alter partition", message, 3, then)
        return True

    def _allocate(self) -> bool:
        process = self.cluster.leader()
        broker = self.rng.choice(self.brokers)
        if process is None or broker.epoch < 0:
            return False

        was_stale = self.checker.records.is_stale(broker.id, broker.epoch)

        def then(answer: Any) -> None:
            self.checker.refused(was_stale, answer, "a block of producer ids")
            if answer is not None and not answer.error_code:
                self.checker.allocated(answer.producer_id_start, answer.producer_id_len)
                self.world.trace.kinds["producer ids allocated"] += 1

        self._send_request(
            process, "producer ids", AllocateProducerIdsRequest(broker.id, broker.epoch), 0, then
        )
        return True

    def end(self) -> None:
        self.checker.at_rest()
        self.access.at_rest()
