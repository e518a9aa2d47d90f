"""The settings of fetches, and a partition that is followed: what it does, and its leader's marks."""

from __future__ import annotations

from enum import Enum

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.named_tuple import NamedTuple
from kraftd.partition.partition import Partition


class FetchSettings(NamedTuple):
    """Kafka's keys of a follower's fetches (`NodeConfig.settings`)."""

    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_backoff_ms: int
    num_replica_fetchers: int  # a leader


class State(Enum):
    """What a followed partition does."""

    FETCHING = "fetching"
    TRUNCATING = "truncating"  # until its producers are loaded anew
    FAILED = "failed"  # until a new leader epoch, or for some time


FETCHING = State.FETCHING


class Followed:
    """A partition that is followed. `high_watermark` and `log_start` are the leader's, as of what is
    written now. `doubts_gaps`: offsets that only compaction leaves out must be below the high watermark.
    """

    __slots__ = ("doubts_gaps", "high_watermark", "hosted", "leader_epoch", "log_start", "state")

    def __init__(self, hosted: Hosted, leader_epoch: int) -> None:
        self.hosted = hosted
        self.begin_epoch(leader_epoch)
        self.high_watermark = 0
        self.log_start = 0

    def __repr__(self) -> str:
        return f"<Followed {self.hosted!r} {self.state.value} in epoch {self.leader_epoch}>"

    def begin_epoch(self, leader_epoch: int) -> None:
        """Follow the leader of an epoch, from any earlier state."""
        self.leader_epoch = leader_epoch
        self.doubts_gaps = True
        self.state = State.TRUNCATING if self.hosted.is_truncating else State.FETCHING

    @property
    def lag(self) -> int:
        """How many records its log ends before the leader's high watermark."""
        partition = self.hosted.partition
        return 0 if partition is None else max(0, self.high_watermark - partition.log_end_offset)

    @property
    def partition(self) -> Partition:
        assert self.hosted.partition is not None
        return self.hosted.partition
