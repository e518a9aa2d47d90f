"""The throttles of replication (KIP-73): how fast replicas that catch up are sent and fetched.

`leader.replication.throttled.replicas` and its twin for followers name the replicas of a topic, the rates are
configs of brokers. Replicas in sync are never held back, but what they replicate counts.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.broker_node.partitions.topic_configs import TopicConfig, TopicConfigs
from kraftd.configdef.node import NodeConfig
from kraftd.ground.windowed_rate import WindowedRate
from kraftd.metadata.throttled import FOLLOWERS, LEADERS, Throttled, rate_key

RECHECK_MS = 100  # after which what was held back is looked at again


class ReplicationQuota:
    """One side, of leaders or of followers. `limit` is in bytes a second, None without one."""

    def __init__(
        self,
        rate: WindowedRate,
        limit: Callable[[], int | None],
        throttled: Callable[[str], Throttled],
        node_id: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._rate = rate
        self._limit = limit
        self._throttled = throttled
        self._node_id = node_id
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"<ReplicationQuota of {self._limit()} bytes a second, {self._rate!r}>"

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit."""
        return self._limit() is not None

    def names(self, hosted: Hosted) -> bool:
        """Return whether the replica of this broker is one of the throttled ones."""
        return self._throttled(hosted.topic).names(hosted.index, self._node_id)

    def holds_back(self, hosted: Hosted) -> bool:
        """Return whether the replica, if it is not in sync, has to wait."""
        limit = self._limit()
        return limit is not None and self._rate.is_over(limit, self._now_ms()) and self.names(hosted)

    def record(self, hosted: Hosted, size_bytes: int) -> None:
        """Count records that were sent or fetched."""
        if size_bytes and self.names(hosted):
            self._rate.record(size_bytes, self._now_ms())


class ReplicationQuotas:
    """Both sides, and the partitions that a leader holds back."""

    def __init__(self, configs: TopicConfigs, static: NodeConfig, now_ms: Callable[[], int]) -> None:
        def side(name: str, throttled: Callable[[TopicConfig], Throttled]) -> ReplicationQuota:
            window_ms = 1_000 * static.integer("replication.quota.window.size.seconds")
            return ReplicationQuota(
                WindowedRate(window_ms, static.integer("replication.quota.window.num")),
                lambda: _limit(configs, rate_key(name)),
                lambda topic: throttled(configs.of(topic)),
                configs.node_id,
                now_ms,
            )

        window_ms = 1_000 * static.integer("alter.log.dirs.replication.quota.window.size.seconds")
        samples = static.integer("alter.log.dirs.replication.quota.window.num")
        self.of_moves = WindowedRate(window_ms, samples)  # between log directories of this broker
        self.moves_limit = lambda: _limit(configs, "replica.alter.log.dirs.io.max.bytes.per.second")
        self.leader = side(LEADERS, lambda config: config.throttled_leaders)
        self.follower = side(FOLLOWERS, lambda config: config.throttled_followers)
        self._held: set[tuple[str, int]] = set()
        self._recheck_ms: int | None = None
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"<ReplicationQuotas {self.leader!r}, {self.follower!r}>"

    def is_held_back(self, hosted: Hosted, follower_id: int) -> bool:
        """Return whether a follower gets no records of a partition now; it is looked at again later."""
        partition = hosted.partition
        if partition is None or follower_id in partition.isr.committed:
            return False
        if not self.leader.holds_back(hosted):
            return False
        self._held.add((hosted.topic, hosted.index))
        if self._recheck_ms is None:
            self._recheck_ms = self._now_ms() + RECHECK_MS
        return True

    def deadline_ms(self) -> int | None:
        """When `take_held` has something; None for never."""
        return self._recheck_ms

    def take_held(self) -> set[tuple[str, int]]:
        """Remove and return the partitions that are to be looked at again, if that is due."""
        if self._recheck_ms is None or self._now_ms() < self._recheck_ms:
            return set()
        held, self._held, self._recheck_ms = self._held, set(), None
        return held


def _limit(configs: TopicConfigs, key: str) -> int | None:
    for known in configs.of_broker():
        text = known.get(key)
        if text is not None:
            try:
                return int(text)
            except ValueError:
                return None  # only what was set before its type was known
    return None
