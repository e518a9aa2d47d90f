"""Tells the controller which log directory has which partition, where it does not know (KIP-858).

A broker with several directories chooses one for a new log. Only with that knowledge can the controller take
leadership from the partitions of a directory that fails.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraftd.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from kraftd.types import Uuid
from kraftd.wire.message import Message

MOST_AT_ONCE = 2_000  # partitions in a request; Kafka's controllers take 2250
RETRY_MS = 1_000

Ask = Callable[[Message, Callable[[Message | None], None]], None]
Key = tuple[Uuid, int]  # topic id and index


class DirectoryAssignments:
    """`ask` asks the controller; `identity` is this broker's id and epoch. `answered` is called after an
    answer.
    """

    def __init__(
        self,
        ask: Ask,
        identity: Callable[[], tuple[int, int]],
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._identity = identity
        self._answered = answered
        self._found_again: set[Key] = set()
        self._wanted: dict[Key, Uuid] = {}
        self._then: dict[Key, Callable[[], None]] = {}
        self._is_asking = False
        self._retry_ms: int | None = None

    def __repr__(self) -> str:
        return f"<DirectoryAssignments, {len(self._wanted)} to be sent>"

    def note(
        self, topic_id: Uuid, index: int, directory_id: Uuid, then: Callable[[], None] | None = None
    ) -> None:
        """The log of a partition is in a directory that the metadata does not name, or will be there: `then`
        is called once the controller has accepted that, unless another directory was noted meanwhile.
        """
        key = topic_id, index
        self._wanted[key] = directory_id
        self._then.pop(key, None)
        if then is not None:
            self._then[key] = then

    def note_found_again(self, topic_id: Uuid, index: int, directory_id: Uuid) -> None:
        """The log of a partition is in a directory, though the metadata calls it lost."""
        self._found_again.add((topic_id, index))
        self.note(topic_id, index, directory_id)

    @property
    def queued_count(self) -> int:
        """How many partitions' directories the controller has not accepted yet."""
        return len(self._wanted)

    @property
    def has_found_again(self) -> bool:
        """Return whether the metadata calls logs lost that are there: this broker cannot lead them yet. An
        unfencing elects it, a later assignment does not.
        """
        return bool(self._found_again)

    def deadline_ms(self) -> int | None:
        """When `send` has work again; None for never."""
        return self._retry_ms

    def send(self, now_ms: int) -> None:
        """Send what is to be sent, unless a request is under way, or the last one was refused just now."""
        if not self._wanted or self._is_asking:
            return
        broker_id, broker_epoch = self._identity()
        if broker_epoch < 0:
            return
        if self._retry_ms is not None and now_ms < self._retry_ms:
            return
        self._retry_ms = None
        sent = dict(list(self._wanted.items())[:MOST_AT_ONCE])
        by_directory: dict[Uuid, dict[Uuid, list[PartitionData]]] = {}
        for (topic_id, index), directory_id in sent.items():
            topics = by_directory.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(PartitionData(index))
        directories = [
            DirectoryData(directory_id, [TopicData(topic_id, parts) for topic_id, parts in topics.items()])
            for directory_id, topics in by_directory.items()
        ]

        def answered(answer: Message | None) -> None:
            self._is_asking = False
            if not isinstance(answer, AssignReplicasToDirsResponse) or answer.error_code:
                self._retry_ms = now_ms + RETRY_MS
                return
            refused = {
                (topic.topic_id, one.partition_index)
                for directory in answer.directories
                for topic in directory.topics
                for one in topic.partitions
                if one.error_code
            }
            for key, directory_id in sent.items():  # one that is refused is gone, or of another broker
                if self._wanted.get(key) == directory_id:
                    del self._wanted[key]
                    self._found_again.discard(key)
                    then = self._then.pop(key, None)
                    if then is not None and key not in refused:
                        then()
            self._answered()

        self._is_asking = True
        self._ask(AssignReplicasToDirsRequest(broker_id, broker_epoch, directories), answered)
