"""Random lives of brokers have the same results in Kafka's controller classes and in kraftd.

Registrations, heartbeats, sessions that end, controlled shutdowns, failovers, features and producer ids.
"""

from __future__ import annotations

import dataclasses
import random
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kraftd.controller.activation import activate
from kraftd.controller.brokers.producer_ids import allocate_producer_ids
from kraftd.controller.brokers.registration import register_broker, unregister_broker
from kraftd.controller.brokers.states import broker_heartbeat, fence_stale_broker, renew_session
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.features.controllers import register_controller
from kraftd.controller.features.update import update_features
from kraftd.ground.refusal import Refusal
from kraftd.messages import broker_registration_request, controller_registration_request
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import partition_record_version, record_version, records_changed_between
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.controller.cluster import Cluster, directory
from tests.controller.oracle import ControllerOracle, OracleAnswer, command

pytestmark = pytest.mark.kafka

WORLDS = 60
OPERATIONS = 200
BROKERS = range(1, 6)
STEP_MS = 500


class BrokerOracle(ControllerOracle):
    """Kafka's ClusterControlManager and its neighbours in a JVM of their own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            command("BrokerOracle"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


@pytest.fixture(scope="module")
def oracle() -> Iterator[BrokerOracle]:
    started = BrokerOracle()
    yield started
    started.close()


class World:
    """The same cluster twice, Kafka's and ours."""

    def __init__(self, oracle: BrokerOracle, seed: int) -> None:
        self.oracle = oracle
        self.random = random.Random(seed)
        self.now_ms = 1_000
        self.cluster = Cluster(
            metadata_version=self.random.choice((7, 12, 14, 15, 17, 23, 30, 30, 30)),
            elr=seed % 3 == 0,
        )
        if self.cluster.image.metadata_version < 23:
            self.cluster.image.features.pop("eligible.leader.replicas.version", None)
            del self.cluster.applied[1:]
            self.cluster.image.offset = 0
        oracle.start(seed)
        self.oracle.replay(self.cluster.applied)
        self.incarnations: dict[int, int] = dict.fromkeys(BROKERS, 0)
        self.record_kinds: list[str] = []
        self.history: list[str] = []

    @property
    def ctx(self) -> Context:
        return dataclasses.replace(self.cluster.ctx, now_ms=self.now_ms, kraft_version=1)

    def pass_time(self) -> None:
        """Advance the time by a step, so that no two sessions end at once."""
        self.now_ms += STEP_MS
        self.oracle.run(f"time {self.now_ms}")
        # Kafka's also ends, without records, sessions that were never registered.
        self.compare(
            "fence_stale", fence_stale_broker, lambda ours, theirs: theirs.text == "true" or not ours
        )

    def compare(
        self,
        line: str,
        decide: Callable[[Context], Decision[Any]],
        same: Callable[[Any, OracleAnswer], bool],
    ) -> Any:
        """Let both decide and compare the bytes of the records, or the error codes. None if both refuse."""
        theirs = self.oracle.run(line)
        self.history.append(line)
        where = "\n".join(self.history[-12:])
        try:
            decision = decide(self.ctx)
        except Refusal as refusal:
            assert theirs.error is not None, f"only ours refused: {refusal}\n{where}"
            assert refusal.code.name == theirs.error.split()[0], f"{refusal} {theirs}\n{where}"
            return None
        assert theirs.error is None, f"only theirs refused: {theirs.error}\n{where}"
        assert by_partition(decision.records) == by_partition(theirs.records), where
        assert same(decision.answer, theirs), f"{decision.answer} {theirs}\n{where}"
        self.cluster.apply(decision.records)
        if decision.after is not None:
            decision.after(self.cluster.image.offset + 1)
        self.record_kinds += [type(record.message).__name__ for record in decision.records]
        return decision.answer

    def request(self, line: str, version: int, request: Message, decide: Callable[..., Decision[Any]]) -> Any:
        """Let both answer a request and compare the bytes of the answers."""
        return self.compare(
            f"{line} {version} {encode_bytes(request, version).hex()}",
            decide,
            lambda answer, theirs: theirs.text == "-" or encode_bytes(answer, version) == theirs.answer,
        )

    # Operations

    def register(self) -> None:
        broker_id = self.random.choice(BROKERS)
        if self.random.random() < 0.7:
            self.incarnations[broker_id] += 1
        broker = self.cluster.image.brokers.get(broker_id)
        version = self.random.choice((1, 2, 3, 4))
        features = [
            broker_registration_request.Feature(name, low, high)
            for name, (low, high) in supported_features().items()
            if self.random.random() < 0.99
        ]
        if self.random.random() < 0.05:
            features[0].max_supported_version = 0
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id="other" if self.random.random() < 0.03 else "kraftd-tests-0123456789",
            incarnation_id=bytes(8) + bytes((broker_id, self.incarnations[broker_id] + 1)) * 4,
            listeners=[
                broker_registration_request.Listener("P", "h", 9092, self.random.choice((0, 0, 0, 3)))
            ],
            features=features,
            rack=self.random.choice((None, "r")),
            log_dirs=(directory(broker_id), directory(broker_id, 1)) if version >= 2 else (),
        )
        if version >= 2 and self.random.random() < 0.1:
            odd = (bytes(15) + b"\x07", directory(1), directory(broker_id), directory(broker_id))
            request.log_dirs = tuple(self.random.sample(odd, self.random.randint(0, 4)))
        if version >= 3 and broker is not None:
            request.previous_broker_epoch = self.random.choice((-1, broker.epoch, broker.epoch))
        self.request("register", version, request, lambda ctx: register_broker(ctx, request, version))

    def beat(self, broker_id: int | None = None, **wanted: Any) -> None:
        broker_id = broker_id or self.random.choice(BROKERS)
        broker = self.cluster.image.brokers.get(broker_id)
        epoch = -1 if broker is None else broker.epoch
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=epoch if self.random.random() < 0.97 else epoch + 1,
            current_metadata_offset=self.random.choice(
                (0, self.cluster.image.offset, self.cluster.image.offset)
            ),
            want_fence=self.random.random() < 0.1,
            want_shut_down=self.random.random() < 0.15,
        )
        for name, value in wanted.items():
            setattr(request, name, value)
        if self.random.random() < 0.05:
            request.offline_log_dirs = (directory(broker_id, self.random.randrange(2)),)
        if self.random.random() < 0.3:
            request.cordoned_log_dirs = tuple(
                directory(broker_id, n) for n in range(self.random.randrange(3))
            )

        def decide(ctx: Context) -> Decision[Any]:
            renew_session(ctx, request)
            return broker_heartbeat(ctx, request)

        self.request("heartbeat", 2, request, decide)

    def beat_all(self) -> None:
        """Every broker sends a heartbeat, most of them without a request, as in normal operation."""
        for broker_id in BROKERS:
            self.pass_time()
            shutting = self.cluster.image.brokers.get(broker_id)
            wish = shutting is not None and shutting.in_controlled_shutdown
            self.beat(
                broker_id,
                want_fence=False,
                want_shut_down=wish,
                current_metadata_offset=self.cluster.image.offset,
            )

    def unregister(self) -> None:
        broker_id = self.random.choice(BROKERS)
        request = UnregisterBrokerRequest(broker_id)
        self.compare(
            f"unregister {broker_id}", lambda ctx: unregister_broker(ctx, request), lambda _a, _s: True
        )

    def fail_over(self) -> None:
        """Let the next leader start with nothing but the image."""
        self.compare("failover", lambda ctx: activate(ctx, []), lambda _a, _s: True)
        for broker in list(self.cluster.image.brokers.values()):
            if not broker.fenced:
                self.pass_time()
                self.beat(broker.id, want_fence=False, want_shut_down=False, broker_epoch=broker.epoch)

    def register_a_controller(self) -> None:
        request = ControllerRegistrationRequest(
            controller_id=3001,
            incarnation_id=bytes(15) + b"\1",
            listeners=[controller_registration_request.Listener("C", "h", 9093, 0)],
            features=[
                controller_registration_request.Feature(name, low, high if self.random.random() < 0.9 else 0)
                for name, (low, high) in supported_features().items()
            ],
        )
        self.request("controller", 0, request, lambda ctx: register_controller(ctx, request))

    def change_a_feature(self) -> None:
        random = self.random
        name = random.choice([*supported_features(), "metadata.version", "no.version"])
        if name == "kraft.version":
            return  # the quorum finalizes it
        image = self.cluster.image
        current = image.metadata_version if name == "metadata.version" else image.features.get(name, 0)
        level, upgrade_type = random.choice((0, 1, 7, 17, 23, 31, -1)), random.choice((1, 2, 3, 4))
        if random.random() < 0.7:
            level = current + random.choice((-1, 0, 1, 1, 1))
            upgrade_type = 1 if level > current else random.choice((1, 2, 2, 3))
        if name == "metadata.version" and 7 <= level < current and records_changed_between(current, level):
            return  # Kafka always refuses it
        updates = [FeatureUpdateKey(name, level, False, upgrade_type)]
        request = UpdateFeaturesRequest(feature_updates=updates, validate_only=self.random.random() < 0.2)
        if image.metadata_version < 17 <= level:
            return  # brokers without directories would have to register again
        self.compare(
            f"features 1 {encode_bytes(request, 1).hex()}",
            lambda ctx: update_features(ctx, request, 1),
            lambda answer, theirs: ErrorCode(answer.error_code).name == theirs.text,
        )

    def allocate(self) -> None:
        broker_id = self.random.choice(BROKERS)
        broker = self.cluster.image.brokers.get(broker_id)
        request = AllocateProducerIdsRequest(broker_id, 0 if broker is None else broker.epoch)
        self.request("allocate", 0, request, lambda ctx: allocate_producer_ids(ctx, request))

    def add_a_topic(self) -> None:
        """Write the records of a topic; placement and configs are compared elsewhere."""
        image = self.cluster.image
        active = [broker.id for broker in image.brokers.values() if broker.is_active]
        if not active or image.topic_count > 4:
            return
        topic_id = self.random.randbytes(16)
        records = [VersionedRecord(TopicRecord(f"t{image.offset}", topic_id), 0)]
        version = partition_record_version(image.metadata_version)
        for index in range(3):
            replicas = tuple(self.random.sample(active, self.random.randint(1, min(3, len(active)))))
            partition = PartitionRecord(
                index, topic_id, replicas, replicas, leader=replicas[0], leader_epoch=0, partition_epoch=0
            )
            if version >= 1:
                partition.directories = tuple(
                    image.brokers[replica].directories[0]
                    if image.brokers[replica].directories
                    else bytes(15) + b"\1"
                    for replica in replicas
                )
            records.append(VersionedRecord(partition, version))
        self.oracle.replay(records)
        self.cluster.apply(records)


WHAT_HAPPENS = (
    (World.register, 6),
    (World.beat, 8),
    (World.beat_all, 6),
    (World.unregister, 0.4),
    (World.fail_over, 0.5),
    (World.register_a_controller, 0.5),
    (World.change_a_feature, 2),
    (World.allocate, 0.5),
    (World.add_a_topic, 3),
)


def by_partition(records: list[VersionedRecord]) -> dict[tuple[bytes, int] | None, list[bytes]]:
    """Records by their partition; None for others. Kafka's order of partitions and features is by hash."""
    ordered: dict[tuple[bytes, int] | None, list[bytes]] = {}
    for record in records:
        message, partition = record.message, None
        if isinstance(message, PartitionChangeRecord):
            partition = message.topic_id, message.partition_id
        elif isinstance(message, RegisterBrokerRecord | RegisterControllerRecord):
            message.features.sort(key=lambda feature: feature.name)
        ordered.setdefault(partition, []).append(encode_record(record))
    return ordered


@pytest.mark.parametrize("world_number", range(WORLDS))
def test_random_lives_of_brokers_are_as_under_kafkas_controller(
    oracle: BrokerOracle, world_number: int
) -> None:
    world = World(oracle, world_number)
    kinds, weights = zip(*WHAT_HAPPENS, strict=True)
    epochs = {}
    for happening in world.random.choices(kinds, weights, k=OPERATIONS):
        world.pass_time()
        happening(world)
        for broker in world.cluster.image.brokers.values():  # C3: broker epochs never go back
            assert broker.epoch >= epochs.get(broker.id, -1)
            epochs[broker.id] = broker.epoch
    for record in world.cluster.applied:  # C9: nothing above what the metadata.version allows
        assert record.version <= record_version(type(record.message), 30)
    assert {"RegisterBrokerRecord", "BrokerRegistrationChangeRecord"} <= set(world.record_kinds)
