"""A decision's input: the image, the time, the settings, the brokers' soft state, and random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from kraftd.controller.brokers.heartbeats import BrokerHeartbeats
from kraftd.controller.configs.loggers import LogLevels
from kraftd.controller.policies import NO_POLICIES, Policies
from kraftd.controller.quotas.mutation import MutationQuotas
from kraftd.controller.tokens.secrets import TokenSecrets
from kraftd.metadata.image import Image
from kraftd.metadata.partition_index import PartitionWalk


class Randomness(Protocol):
    """Randomness, from outside."""

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""

    def uuid(self) -> bytes:
        """A random version 4 uuid, 16 bytes."""


class TokenSettings(Struct, frozen=True, kw_only=True):
    """The `delegation.token.*` keys, with Kafka's defaults; without a secret key there are no tokens."""

    secret_key: str = ""
    max_lifetime_ms: int = 604_800_000
    expiry_time_ms: int = 86_400_000
    expiry_check_interval_ms: int = 3_600_000

    def __repr__(self) -> str:
        return f"<TokenSettings {'enabled' if self.secret_key else 'disabled'}>"  # never the key


class ControllerSettings(Struct, frozen=True, kw_only=True):
    """Kafka's settings that decisions depend on, with Kafka's defaults (`DaemonConfig.settings`)."""

    cluster_id: str
    node_id: int
    default_replication_factor: int = 1
    num_partitions: int = 1
    broker_session_timeout_ms: int = 9_000
    metadata_max_idle_interval_ms: int = 500  # 0 is never
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000  # leader.imbalance.check.interval.seconds
    unclean_leader_election_interval_ms: int = 300_000
    delete_topic_enable: bool = True
    unstable_feature_versions_enable: bool = False
    tokens: TokenSettings = TokenSettings()
    mutation_quota_window_ms: int = 1_000  # controller.quota.window.size.seconds
    mutation_quota_window_count: int = 11  # controller.quota.window.num
    static_voter_ids: tuple[int, ...] = ()  # of controller.quorum.voters
    static_config: Mapping[str, str] = {}  # the node's own .properties as text

    def __repr__(self) -> str:
        return f"<ControllerSettings of node {self.node_id}>"  # never the texts, which may hold secrets


@dataclass(slots=True)
class Context:
    """The input of one decision, which changes nothing in it.

    now_ms: milliseconds that never go back, for timeouts. wall_ms: the wall clock, for stored times.
    next_offset: that of the next record, which is also the broker epoch of a broker registered now.
    kraft_version: the quorum's finalized kraft.version. walks: the progress of periodic tasks over very many
    partitions. log_levels: of this node, which a decision may change.
    """

    image: Image
    now_ms: int
    settings: ControllerSettings
    heartbeats: BrokerHeartbeats
    rng: Randomness
    next_offset: int = 0
    kraft_version: int = 0
    wall_ahead_ms: int = 0  # of now_ms
    walks: dict[str, PartitionWalk] = field(default_factory=dict)
    policies: Policies = NO_POLICIES
    log_levels: LogLevels = field(default_factory=LogLevels)
    token_secrets: TokenSecrets = field(init=False)
    mutations: MutationQuotas = field(init=False)

    def __post_init__(self) -> None:
        self.mutations = MutationQuotas(
            self.settings.mutation_quota_window_ms, self.settings.mutation_quota_window_count
        )
        self.token_secrets = TokenSecrets(self.settings.tokens.secret_key)

    @property
    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch by the wall clock, which may jump."""
        return self.now_ms + self.wall_ahead_ms

    def __repr__(self) -> str:
        return f"<Context at {self.now_ms} ms, next offset {self.next_offset}, {self.image!r}>"
