"""What a decision may look at: the image, the time, the settings, the brokers' soft state, and dice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from kraftd.controller.heartbeats import BrokerHeartbeats
from kraftd.metadata.image import Image
from kraftd.metadata.partition_index import PartitionWalk


class Dice(Protocol):
    """Randomness, from outside."""

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""

    def uuid(self) -> bytes:
        """A random version 4 uuid, 16 bytes."""


class ControllerSettings(Struct, frozen=True, kw_only=True):
    """Kafka's settings that decisions depend on, with Kafka's defaults."""

    cluster_id: str
    node_id: int
    default_replication_factor: int = 1  # default.replication.factor
    num_partitions: int = 1  # num.partitions
    session_timeout_ms: int = 9_000  # broker.session.timeout.ms
    max_idle_interval_ms: int = 500  # metadata.max.idle.interval.ms; 0 is never
    leader_rebalance: bool = True  # auto.leader.rebalance.enable
    leader_imbalance_check_interval_ms: int = 300_000  # leader.imbalance.check.interval.seconds
    unclean_election_check_interval_ms: int = 300_000  # unclean.leader.election.interval.ms
    topic_deletion: bool = True  # delete.topic.enable
    unstable_features: bool = False  # unstable.feature.versions.enable
    unstable_apis: bool = False  # unstable.api.versions.enable
    static_voter_ids: tuple[int, ...] = ()  # of controller.quorum.voters
    static_config: Mapping[str, str] = {}  # the node's own .properties as text


@dataclass(slots=True)
class Context:
    """One per leader and moment; a decision changes nothing in it.

    now_ms: milliseconds that never go back.  next_offset: where the next record will be appended, which is
    also the broker epoch of a broker registered now.  kraft_version: the quorum's finalized kraft.version.
    walks: how far periodic tasks have got that look at very many partitions.
    """

    image: Image
    now_ms: int
    settings: ControllerSettings
    heartbeats: BrokerHeartbeats
    dice: Dice
    next_offset: int = 0
    kraft_version: int = 0
    walks: dict[str, PartitionWalk] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Context at {self.now_ms} ms, next offset {self.next_offset}, {self.image!r}>"
