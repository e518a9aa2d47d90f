"""A broker leaves very many partitions in parts, so that other requests are decided in between.

Soft state, stored with the heartbeats. A departure is over once every partition of the broker was examined:
those that it hosted at the beginning, and those that it got since.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata.image import Image
from kraftd.metadata.partition_index import TopicPartition
from kraftd.wire.record_frame import VersionedRecord

EXAMINED_PER_LEFT = 4  # a call examines this many partitions for each that it may leave: most are left


class Departure:
    """The progress of one registration of a broker in leaving its partitions.

    It begins with the hosted partitions: topic ids, each with a mask of partitions.
    """

    __slots__ = ("_hosted", "_partitions", "_position", "broker_epoch", "broker_id")

    def __init__(self, broker_id: int, broker_epoch: int, hosted: list[tuple[bytes, int]]) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        hosted.reverse()
        self._hosted = hosted  # its last item comes next
        self._partitions: list[TopicPartition] = []  # comes before `_hosted`
        self._position = 0

    def next(self, image: Image, limit: int) -> tuple[list[TopicPartition], int]:
        """Up to that many partitions to leave now, and the position after them: for ``reach``."""
        found: list[TopicPartition] = []
        position = self._position
        end = position + limit * EXAMINED_PER_LEFT
        while position < end and len(found) < limit and not self.is_last(position):
            partition = self._partitions[position]
            if is_to_be_left(image, self.broker_id, partition):
                found.append(partition)
            position += 1
        return found, position

    def reach(self, position: int) -> None:
        """Note that the broker has left all partitions before that position."""
        self._position = position

    def is_last(self, position: int) -> bool:
        """Return whether nothing follows that position."""
        while position >= len(self._partitions) and self._hosted:
            topic_id, mask = self._hosted.pop()
            self._partitions += [(topic_id, index) for index in range(mask.bit_length()) if mask >> index & 1]
        return position >= len(self._partitions)

    @property
    def is_over(self) -> bool:
        return self.is_last(self._position)

    def note(self, records: Iterable[VersionedRecord]) -> None:
        """Note records decided meanwhile: the broker must also leave the partitions whose ISR, ELR or
        leadership they give to it.
        """
        broker_id = self.broker_id
        for message, _ in records:
            if isinstance(message, PartitionRecord | PartitionChangeRecord) and (
                message.leader == broker_id or broker_id in (message.isr or ())
            ):
                self._partitions.append((message.topic_id, message.partition_id))

    def __repr__(self) -> str:
        rest = f" and {len(self._hosted)} topics" if self._hosted else ""
        return (
            f"<Departure of {self.broker_id}, {self._position} of {len(self._partitions)} partitions{rest}>"
        )


def is_to_be_left(image: Image, broker_id: int, partition: TopicPartition) -> bool:
    """Return whether the broker's departure changes the partition. The last member of an ISR that no longer
    leads stays in it.
    """
    topic_id, index = partition
    state = image.partition(topic_id, index)
    if state is None or broker_id not in state.isr:
        return False
    return state.leader == broker_id or len(state.isr) > 1
