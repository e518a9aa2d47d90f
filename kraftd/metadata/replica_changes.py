"""What changed of the partitions that one broker hosts, and which topics of the cluster are gone: for the
broker in this process, if there is one.

The image of an active controller is ahead of what is committed, so each change keeps the partition's state as
of its record. The broker takes changes once they are committed. An abort of a transaction is a change back.
A start replays several changes of each partition before the broker takes the first. Those that are final are
kept as one state a partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from kraftd.metadata.state import PartitionState
from kraftd.named_tuple import NamedTuple

_SETTLED_WITH_ANOTHER = 8  # changes that wait, with each that is noted


class ReplicaChange(NamedTuple):
    """A partition after the record at an offset, -1 of a final one; `state` is None if it is gone, or no
    longer hosted.
    """

    offset: int
    topic_id: bytes
    topic: str
    partition: int
    state: PartitionState | None

    def __repr__(self) -> str:
        return f"<ReplicaChange of {self.topic}-{self.partition} at {self.offset}: {self.state}>"


class TopicChange(NamedTuple):
    """A topic that a record at an offset has removed, or put back."""

    offset: int
    topic_id: bytes
    topic: str
    is_removed: bool


class NewestChanges:
    """The newest change of each partition, by the topic's name."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[str, tuple[bytes, dict[int, PartitionState | None]]] = {}

    def __len__(self) -> int:
        return sum(len(states) for _, states in self._topics.values())

    def __repr__(self) -> str:
        return f"<NewestChanges of {len(self)} partitions>"

    def note(self, topic_id: bytes, topic: str, index: int, state: PartitionState | None) -> None:
        """Note a change; those of a former topic of that name stay only where this one has none."""
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = topic_id, {}
        elif known[0] != topic_id:
            if state is None:
                known[1].setdefault(index, None)
                return
            known = self._topics[topic] = topic_id, dict.fromkeys(known[1])
        known[1][index] = state

    def get(self, topic: str, index: int) -> ReplicaChange | None:
        """The newest change of a partition."""
        topic_id, states = self._topics.get(topic, _NONE)
        return ReplicaChange(-1, topic_id, topic, index, states[index]) if index in states else None

    def pop(self, topic: str, index: int) -> ReplicaChange | None:
        """Remove and return it."""
        topic_id, states = self._topics.get(topic, _NONE)
        if index not in states:
            return None
        return ReplicaChange(-1, topic_id, topic, index, states.pop(index))

    def __iter__(self) -> Iterator[ReplicaChange]:
        for topic, (topic_id, states) in self._topics.items():
            for index, state in states.items():
                yield ReplicaChange(-1, topic_id, topic, index, state)


_NONE: tuple[bytes, dict[int, PartitionState | None]] = (b"", {})


class ReplicaChanges:
    """The changes that one broker has not taken yet, oldest first. `_newest` are the final ones until it
    takes the first.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self._newest: NewestChanges | None = NewestChanges()
        self._taking: Iterator[ReplicaChange] = iter(())  # what is left of them
        self._changes: deque[ReplicaChange] = deque()
        self._topics: deque[TopicChange] = deque()

    def __repr__(self) -> str:
        return f"<{len(self._newest or ()) + len(self._changes)} ReplicaChanges of broker {self.broker_id}>"

    def note(
        self,
        offset: int,
        topic_id: bytes,
        topic: str,
        index: int,
        before: PartitionState | None,
        after: PartitionState | None,
        is_final: bool = False,
    ) -> None:
        """Note that a record has changed a partition, if the broker hosts it before or afterwards. A final
        one is not undone, and neither are those before it.
        """
        broker_id = self.broker_id
        if after is None or broker_id not in after.replicas:
            if before is None or broker_id not in before.replicas:
                return
            after = None
        newest, changes = self._newest, self._changes
        if not is_final or newest is None or (changes and self.settle(offset + 1, _SETTLED_WITH_ANOTHER)):
            changes.append(ReplicaChange(offset, topic_id, topic, index, after))
        else:
            newest.note(topic_id, topic, index, after)

    def note_topic(self, offset: int, topic_id: bytes, name: str, *, is_removed: bool) -> None:
        """Note that a topic is gone, or is there: an abort of a transaction puts one back."""
        self._topics.append(TopicChange(offset, topic_id, name, is_removed))

    def settle(self, end: int, most: int) -> bool:
        """Account for up to `most` changes of records below an offset, which are final; returns whether there
        are more.
        """
        changes, newest = self._changes, self._newest
        if newest is None:
            return False
        for _ in range(min(most, len(changes))):
            if changes[0].offset >= end:
                return False
            _, topic_id, topic, index, state = changes.popleft()
            newest.note(topic_id, topic, index, state)
        return bool(changes) and changes[0].offset < end

    def undo_to(self, offset: int) -> None:
        """Forget the changes after an offset, whose records are undone."""
        for changes in (self._changes, self._topics):
            while changes and changes[-1].offset > offset:
                changes.pop()

    def take_newest(self) -> NewestChanges:
        """Remove and return the newest final change of each partition; empty once some were taken."""
        newest, self._newest = self._newest, None
        return NewestChanges() if newest is None else newest

    def take(self, committed_end: int, most: int) -> list[ReplicaChange]:
        """Remove and return up to `most` changes of records below an offset."""
        if self._newest is not None:
            self._taking = iter(self.take_newest())
        changes = self._changes
        taken = list(islice(self._taking, most))
        while changes and changes[0].offset < committed_end and len(taken) < most:
            taken.append(changes.popleft())
        return taken

    def take_removed_topics(self, committed_end: int) -> list[tuple[str, bytes]]:
        """Remove and return the names and ids of topics that records below an offset have removed."""
        removed: dict[bytes, str] = {}
        while self._topics and self._topics[0].offset < committed_end:
            change = self._topics.popleft()
            if change.is_removed:
                removed[change.topic_id] = change.topic
            else:
                removed.pop(change.topic_id, None)
        return [(name, id) for id, name in removed.items()]
