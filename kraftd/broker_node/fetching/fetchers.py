"""All fetchers of a broker: which one fetches a partition, and from which leader."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from zlib import crc32

from kraftd.broker_node.fetching.fetcher import Fetcher, FetcherPorts
from kraftd.broker_node.fetching.followed import FetchSettings, Followed, State
from kraftd.broker_node.fetching.leader_session import Key
from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.ground.effect import Effect
from kraftd.ground.ticks import earliest_ms
from kraftd.partition.partition import FOLLOWER
from kraftd.wire.error_code import ErrorCode

# The first level of metadata.version with a version of Fetch among brokers (Kafka's MetadataVersion).
FETCH_VERSIONS = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14), (7, 13))
MOVED_PER_SLICE = 500  # partitions, from one fetcher to another


@cache
def fetch_version(metadata_version: int) -> int:
    """The version of Fetch that followers use at a level of metadata.version."""
    return next((version for level, version in FETCH_VERSIONS if metadata_version >= level), 13)


class ReplicaFetchers:
    """The fetchers by leader and number, and the one of each partition that is followed."""

    def __init__(self, settings: FetchSettings, node: FetcherPorts) -> None:
        self._settings = settings
        self._node = node
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._of: dict[Key, Fetcher] = {}

    def __repr__(self) -> str:
        return f"<ReplicaFetchers {len(self._fetchers)}, {len(self._of)} partitions>"

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Fetcher]:
        """The fetchers that have partitions."""
        return (one for one in self._fetchers.values() if one.followed)

    def follow(self, key: Key, hosted: Hosted | None) -> None:
        """Follow a partition's leader as the metadata says, or follow it no more."""
        partition = None if hosted is None else hosted.partition
        if hosted is None or partition is None or partition.role is not FOLLOWER or partition.leader_id < 0:
            self._forget(key)
            return
        fetcher = self._of.get(key)
        if fetcher is not None and fetcher.leader_id == partition.leader_id:
            followed = fetcher.followed[key]
            if followed.hosted is hosted:
                if followed.leader_epoch != partition.leader_epoch:
                    followed.begin_epoch(partition.leader_epoch)
                    fetcher.add(key, followed)
                return
        self._forget(key)
        fetcher = self._of[key] = self._fetcher(partition.leader_id, hosted)
        fetcher.add(key, Followed(hosted, partition.leader_epoch))

    def _fetcher(self, leader_id: int, hosted: Hosted) -> Fetcher:
        number = (31 * crc32(hosted.topic.encode()) + hosted.index) % self._settings.num_replica_fetchers
        found = self._fetchers.get((leader_id, number))
        if found is None:
            found = Fetcher(leader_id, number, self._settings, self._node)
            self._fetchers[leader_id, number] = found
        return found

    def resize(self, count: int) -> None:
        """Let `count` fetchers a leader divide the partitions among them (`num.replica.fetchers`).

        A partition that another fetcher takes over is fetched from the end of its log. No append of its is
        unwritten: each ends with the step of its answer.
        """
        self._settings = self._settings._replace(num_replica_fetchers=count)
        self._node.go_on(self._divide_anew())

    def _divide_anew(self) -> Iterator[None]:
        for number, key in enumerate(list(self._of), 1):
            before = self._of.get(key)
            if before is not None:  # else it is followed no more
                followed = before.followed[key]
                after = self._fetcher(before.leader_id, followed.hosted)
                if after is not before:
                    before.remove(key)
                    self._of[key] = after
                    after.add(key, followed)
            if not number % MOVED_PER_SLICE:
                yield

    def _forget(self, key: Key) -> None:
        fetcher = self._of.pop(key, None)
        if fetcher is not None:
            fetcher.remove(key)

    def truncated(self, key: Key) -> None:
        """The log of a partition was truncated, and its producers are known again."""
        fetcher = self._of.get(key)
        if fetcher is not None:
            fetcher.truncated(key)

    def wrote(self, took_ms: int) -> None:
        """Appends took so long."""
        for fetcher in self._fetchers.values():
            fetcher.wrote(took_ms)

    def append_ended(self, key: Key, end_offset: int, error: ErrorCode | None) -> list[Effect]:
        """What follows from an append of fetched records."""
        fetcher = self._of.get(key)
        return [] if fetcher is None else fetcher.append_ended(key, end_offset, error)

    def max_lag(self) -> int:
        """How many records the partition that lags most is behind its leader."""
        return max(
            (one.lag for fetcher in self._fetchers.values() for one in fetcher.followed.values()), default=0
        )

    def failed_count(self) -> int:
        """How many partitions are followed no more, until their leaders change."""
        states = (one.state for fetcher in self._fetchers.values() for one in fetcher.followed.values())
        return sum(state is State.FAILED for state in states)

    def send(self) -> None:
        """Send what is due."""
        for fetcher in self._fetchers.values():
            fetcher.send()

    def deadline_ms(self) -> int | None:
        """When `send` has work; None for never."""
        return earliest_ms(*[fetcher.deadline_ms() for fetcher in self._fetchers.values()])
