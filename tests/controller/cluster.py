"""A small cluster in an image, built in a few lines: brokers, topics, and the replay of decisions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kraftd.configdef.node import NodeConfig
from kraftd.controller.brokers.heartbeats import BrokerHeartbeats
from kraftd.controller.configs.loggers import LogLevels
from kraftd.controller.context import Context, ControllerSettings
from kraftd.controller.decision import Decision
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import BrokerFeature, RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import (
    LATEST_PRODUCTION,
    partition_record_version,
    register_broker_record_version,
)
from kraftd.metadata.state import PartitionState, TopicState
from kraftd.wire.codec import encode_bytes
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record

CONTROLLER_ID = 3000
ELR = "eligible.leader.replicas.version"


def directory(broker_id: int, number: int = 0) -> bytes:
    """The id of a broker's directory."""
    return b"log-directory" + bytes((1 + number, broker_id >> 8, broker_id & 255))


class SeededRandomness:
    """Random numbers with the same values in every run."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def uuid(self) -> bytes:
        return bytes((self._random.randrange(200), *self._random.randbytes(15)))


class Cluster:
    """An image and the rest of a decision's context."""

    def __init__(
        self,
        *,
        metadata_version: int = LATEST_PRODUCTION,
        elr: bool = False,
        rng: Any = None,
        **settings: Any,
    ) -> None:
        self.image = Image()
        self.applied: list[VersionedRecord] = []
        self.settings = ControllerSettings(
            cluster_id="kraftd-tests-0123456789",
            node_id=CONTROLLER_ID,
            static_config=NodeConfig({}),
            **settings,
        )
        self.heartbeats = BrokerHeartbeats(self.settings.broker_session_timeout_ms)
        self.rng = rng or SeededRandomness()
        self.log_levels = LogLevels()
        self.apply([VersionedRecord(FeatureLevelRecord("metadata.version", metadata_version), 0)])
        if elr:
            self.apply([VersionedRecord(FeatureLevelRecord(ELR, 1), 0)])

    @property
    def ctx(self) -> Context:
        return Context(
            self.image,
            1_000,
            self.settings,
            self.heartbeats,
            self.rng,
            next_offset=self.image.offset + 1,
            log_levels=self.log_levels,
        )

    def apply(self, records: Iterable[VersionedRecord]) -> None:
        """Replay records as they come back from the log."""
        for record in records:
            message = decode_record(encode_record(record)).message
            self.image.apply(message, self.image.offset + 1, 1)
            self.applied.append(record)

    def decide(self, decision: Callable[..., Decision[Any]], request: Any, version: int, **more: Any) -> Any:
        """Decide and replay the records; return the answer, which must be encodable."""
        decided = decision(self.ctx, request, version, **more)
        encode_bytes(decided.answer, version)
        self.apply(decided.records)
        return decided.answer

    def decided(self, decision: Callable[..., Decision[Any]], request: Any, version: int) -> tuple[Any, Any]:
        """Decide; return the answer and the records, which are not replayed."""
        made = decision(self.ctx, request, version)
        return made.answer, made.records

    def broker(
        self,
        broker_id: int,
        *,
        rack: str | None = None,
        fenced: bool = False,
        directories: int = 1,
        epoch: int | None = None,
        cordoned: tuple[bytes, ...] | None = None,
        supports: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> Cluster:
        """Register a broker. By default it is unfenced, and its epoch is 100 more than its id."""
        version = register_broker_record_version(self.image.metadata_version)
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=100 + broker_id if epoch is None else epoch,
            incarnation_id=bytes(12) + broker_id.to_bytes(4, "big"),
            rack=rack,
            fenced=True,
            features=[BrokerFeature(name, *levels) for name, levels in supports.items()],
            log_dirs=tuple(directory(broker_id, n) for n in range(directories)) if version >= 3 else (),
            cordoned_log_dirs=cordoned,
        )
        self.apply([VersionedRecord(record, version)])
        if not fenced:
            self.change_broker(broker_id, fenced=-1)
        return self

    def brokers(self, *broker_ids: int, **more: Any) -> Cluster:
        for broker_id in broker_ids:
            self.broker(broker_id, **more)
        return self

    def change_broker(self, broker_id: int, *, fenced: int = 0, shutting_down: int = 0) -> None:
        epoch = self.image.brokers[broker_id].epoch
        change = BrokerRegistrationChangeRecord(broker_id, epoch, fenced, shutting_down)
        self.apply([VersionedRecord(change, 1 if shutting_down else 0)])

    def config(self, key: str, value: str | None, *, topic: str | None = None) -> None:
        """Set a config of a topic, or of the cluster."""
        kind, name = (4, "") if topic is None else (2, topic)
        self.apply([VersionedRecord(ConfigRecord(kind, name, key, value), 0)])

    def topic(self, name: str, *partitions: PartitionState | tuple[int, ...]) -> TopicState:
        """Create a topic with these partitions. A partition given by its replicas has all of them in sync,
        and is led by the first.
        """
        topic_id = b"\1" + self.rng.uuid()[1:]
        version = partition_record_version(self.image.metadata_version)
        records = [VersionedRecord(TopicRecord(name, topic_id), 0)]
        for index, state in enumerate(partitions):
            if isinstance(state, tuple):
                state = partition(state)
            record = PartitionRecord(
                index,
                topic_id,
                state.replicas,
                state.isr,
                state.removing_replicas,
                state.adding_replicas,
                state.leader,
                state.leader_recovery_state,
                state.leader_epoch,
                state.partition_epoch,
                state.directories if version else (),
                state.elr or None,
                state.last_known_elr or None,
            )
            records.append(VersionedRecord(record, version))
        self.apply(records)
        return self.image.topics[topic_id]


def partition(
    replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, leader: int | None = None, **more: Any
) -> PartitionState:
    """A partition in its brokers' first directories. By default all are in sync and the first one leads."""
    isr = replicas if isr is None else isr
    more.setdefault("directories", tuple(directory(replica) for replica in replicas))
    if leader is None:
        leader = isr[0] if isr else -1
    return PartitionState(replicas=replicas, isr=isr, leader=leader, **more)
