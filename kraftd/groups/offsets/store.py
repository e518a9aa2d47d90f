"""Committed offsets by group, and those that open transactions have sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftd.groups.offsets.committed import Committed
from kraftd.groups.timeline import Timeline

TopicPartition = tuple[str, int]
GroupTopicPartition = tuple[str, str, int]

NO_OFFSETS: dict[TopicPartition, Committed] = {}


class OffsetStore:
    """What records of offsets and markers of transactions have made of them.

    pending holds the offsets of open transactions by producer id. open_producers says, by group and
    partition, which producers have one there: such an offset is unstable (KIP-447).
    """

    __slots__ = ("_maybe_empty", "by_group", "open_producers", "pending", "timeline")

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.by_group: dict[str, dict[TopicPartition, Committed]] = {}
        self.pending: dict[int, dict[GroupTopicPartition, Committed]] = {}
        self.open_producers: dict[str, dict[TopicPartition, frozenset[int]]] = {}
        self._maybe_empty: set[str] = set()

    def __repr__(self) -> str:
        return f"<OffsetStore of {len(self.by_group)} groups, {len(self.pending)} transactions>"

    def of_group(self, group_id: str) -> dict[TopicPartition, Committed]:
        return self.by_group.get(group_id, NO_OFFSETS)

    def is_open(self, group_id: str, place: TopicPartition) -> bool:
        """Return whether an open transaction has an offset for the partition."""
        return place in self.open_producers.get(group_id, ())

    def has_open(self, group_id: str) -> bool:
        """Return whether an open transaction has offsets of the group."""
        return bool(self.open_producers.get(group_id))

    def open_places(self, group_id: str) -> Iterable[TopicPartition]:
        return self.open_producers.get(group_id, ())

    def committed(self, group_id: str) -> Iterator[tuple[TopicPartition, Committed]]:
        """A group's offsets as they are below the high watermark."""
        yield from self.timeline.committed_items(self.of_group(group_id))

    def begin_group(self, group_id: str) -> dict[TopicPartition, Committed]:
        """The offsets of a group, none at first."""
        offsets = self.by_group.get(group_id)
        if offsets is None:
            offsets = self.by_group[group_id] = {}
            self._maybe_empty.add(group_id)
        return offsets

    def put(self, group_id: str, place: TopicPartition, committed: Committed, producer_id: int = -1) -> None:
        """Apply a record of an offset, of a transaction if a producer is named."""
        timeline = self.timeline
        if producer_id == -1:
            timeline.put(self.begin_group(group_id), place, committed)
            return
        pending = self.pending.get(producer_id)
        if pending is None:
            pending = {}
            timeline.put(self.pending, producer_id, pending)
        timeline.put(pending, (group_id, *place), committed)
        opened = self.open_producers.get(group_id)
        if opened is None:
            opened = self.open_producers[group_id] = {}
            self._maybe_empty.add(group_id)
        timeline.put(opened, place, opened.get(place, frozenset()) | {producer_id})

    def remove(self, group_id: str, place: TopicPartition) -> None:
        """Apply a tombstone: offsets of open transactions go too."""
        timeline = self.timeline
        offsets = self.by_group.get(group_id)
        if offsets is not None and timeline.remove(offsets, place) is not None:
            self._maybe_empty.add(group_id)
        opened = self.open_producers.get(group_id)
        if opened is None:
            return
        for producer_id in timeline.remove(opened, place) or ():
            pending = self.pending.get(producer_id)
            if pending is not None:
                timeline.remove(pending, (group_id, *place))
        self._maybe_empty.add(group_id)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Apply the marker of a transaction's end.

        An offset counts only if its record is later than that of the offset that is there already, so that
        compaction cannot change the outcome.
        """
        timeline = self.timeline
        pending = timeline.remove(self.pending, producer_id)
        for (group_id, topic, partition), committed in (pending or {}).items():
            place = (topic, partition)
            opened = self.open_producers.get(group_id, {})
            others = opened.get(place, frozenset()) - {producer_id}
            if others:
                timeline.put(opened, place, others)
            else:
                timeline.remove(opened, place)
                self._maybe_empty.add(group_id)
            if is_commit:
                present = self.of_group(group_id).get(place)
                if present is None or committed.record_offset > present.record_offset:
                    self.put(group_id, place, committed)

    def sweep(self) -> None:
        """Drop dictionaries of groups that are empty; only while no change can be taken back."""
        if self._maybe_empty and not len(self.timeline):
            for group_id in self._maybe_empty:
                for table in (self.by_group, self.open_producers):
                    if not table.get(group_id, True):
                        del table[group_id]
            self._maybe_empty.clear()
