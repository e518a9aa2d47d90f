"""What leaders of share partitions count: Kafka's ShareGroupMetrics and SharePartitionMetrics (KIP-932)."""

from __future__ import annotations

from collections import Counter

from kraftd.histogram import Histogram

NS_PER_MS = 1_000_000
PERCENT_BOUNDS = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
SIZE_BOUNDS = tuple(step * 10**power for power in range(5) for step in (1, 2, 5))


class GroupCounts:
    """One group: the share of the partitions that a fetch may read, in percent, and how long it waited for
    them, in nanoseconds.
    """

    def __init__(self) -> None:
        self.fetch_ratios = Histogram(PERCENT_BOUNDS)
        self.acquire_times = Histogram()

    def __repr__(self) -> str:
        return f"<GroupCounts of {self.fetch_ratios.count} fetches>"


class PartitionCounts:
    """One share partition. batch_sizes: records of each acquired batch. read_times: of fetches, in
    nanoseconds. read_ratios: percent of the time since the fetch before that this was.
    """

    def __init__(self) -> None:
        self.batch_sizes = Histogram(SIZE_BOUNDS)
        self.read_times = Histogram()
        self.read_ratios = Histogram(PERCENT_BOUNDS)
        self._begun_ms = 0
        self._idle_ms = 0
        self._ended_ms: int | None = None

    def __repr__(self) -> str:
        return f"<PartitionCounts of {self.read_times.count} reads>"

    def reading(self, now_ms: int) -> None:
        """A fetch begins to read."""
        self._begun_ms = now_ms
        self._idle_ms = 0 if self._ended_ms is None else now_ms - self._ended_ms

    def has_read(self, now_ms: int) -> None:
        """That fetch reads no more."""
        took_ms = now_ms - self._begun_ms
        all_ms = took_ms + self._idle_ms
        self.read_times.note(took_ms * NS_PER_MS)
        # As in Kafka, the least that shows is a millisecond.
        self.read_ratios.note(100 * max(1, took_ms) // max(1, all_ms))
        self._ended_ms = now_ms


class ShareCounts:
    """All of a broker. acknowledgements: how many records members acknowledged, by type. load_times: from the
    fetch that a share partition is loaded for, in nanoseconds. by_group: of groups with share partitions.
    """

    def __init__(self) -> None:
        self.acknowledgements: Counter[int] = Counter()
        self.load_times = Histogram()
        self.by_group: dict[str, GroupCounts] = {}

    def __repr__(self) -> str:
        return f"<ShareCounts of {len(self.by_group)} groups>"

    def of(self, group_id: str) -> GroupCounts:
        """A group's."""
        found = self.by_group.get(group_id)
        if found is None:
            found = self.by_group[group_id] = GroupCounts()
        return found
