"""What changed of the partitions that one broker hosts, and which topics of the cluster are gone: for the
broker in this process, if there is one.

The image of an active controller is ahead of what is committed, so each change keeps the partition's state as
of its record. The broker takes changes once they are committed. An abort of a transaction is a change back.
"""

from __future__ import annotations

from collections import deque

from kraftd.metadata.state import PartitionState
from kraftd.named_tuple import NamedTuple


class ReplicaChange(NamedTuple):
    """A partition after the record at an offset; `state` is None if it is gone, or no longer hosted."""

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


class ReplicaChanges:
    """The changes that one broker has not taken yet, oldest first."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self._changes: deque[ReplicaChange] = deque()
        self._topics: deque[TopicChange] = deque()

    def __len__(self) -> int:
        return len(self._changes)

    def __repr__(self) -> str:
        return f"<{len(self)} ReplicaChanges of broker {self.broker_id}>"

    def note(
        self,
        offset: int,
        topic_id: bytes,
        topic: str,
        index: int,
        before: PartitionState | None,
        after: PartitionState | None,
    ) -> None:
        """Note that a record has changed a partition, if the broker hosts it before or afterwards."""
        broker_id = self.broker_id
        if after is not None and broker_id in after.replicas:
            self._changes.append(ReplicaChange(offset, topic_id, topic, index, after))
        elif before is not None and broker_id in before.replicas:
            self._changes.append(ReplicaChange(offset, topic_id, topic, index, None))

    def note_topic(self, offset: int, topic_id: bytes, name: str, *, is_removed: bool) -> None:
        """Note that a topic is gone, or is there: an abort of a transaction puts one back."""
        self._topics.append(TopicChange(offset, topic_id, name, is_removed))

    def undo_to(self, offset: int) -> None:
        """Forget the changes after an offset, whose records are undone."""
        for changes in (self._changes, self._topics):
            while changes and changes[-1].offset > offset:
                changes.pop()

    def take(self, committed_end: int, most: int) -> list[ReplicaChange]:
        """Remove and return up to `most` changes of records below an offset."""
        changes = self._changes
        taken: list[ReplicaChange] = []
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
