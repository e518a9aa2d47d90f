"""One partition of a fetch or session: the reader's request, and the last answer to it (KIP-227)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from kraftd.fetch.watchers import Member
from kraftd.messages.fetch_request import FetchPartition
from kraftd.messages.fetch_response import PartitionData
from kraftd.types import Uuid

SlotKey = tuple[Uuid | str, int]  # the topic's id or, below Fetch v13, its name; the partition's index
UNKNOWN_OFFSET = -1
NO_EPOCH = -1
SLOT_BYTES = 650  # memory of a slot, its key and its index entries, without the topic's name


def slot_bytes(key: SlotKey) -> int:
    """The most memory that a slot of that key takes."""
    return SLOT_BYTES + len(key[0]) * (1 if key[0].isascii() else 4)


class Parked(Protocol):
    """A fetch that waits for MinBytes."""

    @property
    def min_bytes(self) -> int: ...


class Subscriber(Protocol):
    """The owner of slots. Compared by identity."""

    @property
    def last_fetch_ms(self) -> int: ...

    @property
    def reads_to_log_end(self) -> bool:
        """Return whether its reader is a follower, which reads what is not committed yet, too."""

    @property
    def parked(self) -> tuple[Hashable, Parked] | None:
        """Its fetch that waits, with the caller's id."""

    def __hash__(self) -> int: ...

    def __len__(self) -> int:
        """The number of partitions that it reads."""

    def partition_changed(self, slot: Slot) -> int | None:
        """Note the change; returns the bytes of its parked fetch now, None if none is parked."""

    def note_change(self, slot: Slot) -> None:
        """Note a change that `partition_changed` examines later."""

    def marks_moved(self, slot: Slot) -> bool:
        """Note that only the marks moved; return whether this may change what it can read."""


class Slot:
    """One partition of one subscriber.

    `topic` is None while the id is unknown. `high_watermark` and `log_start_offset` are those of the last
    answer; `order` is the slot's place in answers. `reader_log_start` is a follower's.
    """

    __slots__ = (
        "available_bytes",
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "is_heaped",
        "key",
        "last_fetched_epoch",
        "left_ms",
        "log_start_offset",
        "max_bytes",
        "next_watching",
        "order",
        "previous_watching",
        "reader_log_start",
        "subscriber",
        "topic",
        "topic_id",
        "watching",
    )

    def __init__(
        self,
        subscriber: Subscriber,
        key: SlotKey,
        topic: str | None,
        topic_id: Uuid,
        requested: FetchPartition,
        order: int,
    ) -> None:
        self.subscriber = subscriber
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.order = order
        self.high_watermark = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.available_bytes = 0
        self.is_heaped = False
        self.left_ms: int | None = None
        self.watching: Hashable | None = None
        self.next_watching: Member | None = None
        self.previous_watching: Member | None = None
        self.update(requested)

    @property
    def index(self) -> int:
        return self.key[1]

    @property
    def last_fetch_ms(self) -> int:
        """When the subscriber last fetched while it read this partition; -1 before the first time."""
        return self.subscriber.last_fetch_ms if self.left_ms is None else self.left_ms

    def update(self, requested: FetchPartition) -> None:
        """Store a request's values for the partition. As in Kafka, any negative epoch of a Fetch is none."""
        self.fetch_offset = requested.fetch_offset
        self.max_bytes = requested.partition_max_bytes
        self.current_leader_epoch = max(NO_EPOCH, requested.current_leader_epoch)
        self.last_fetched_epoch = max(NO_EPOCH, requested.last_fetched_epoch)
        self.reader_log_start = requested.log_start_offset

    def watch_key(self) -> Hashable:
        """This slot's key for `changed`: (name, index), or the id until its name is known."""
        return self.topic_id if self.topic is None else (self.topic, self.key[1])

    def note_answer(self, data: PartitionData, records_bytes: int) -> bool:
        """Note what an answer would say; returns whether any of it is new to the reader.

        An error makes the high watermark unknown, so that the partition is reported again after the error.
        """
        is_new = records_bytes > 0 or data.preferred_read_replica >= 0 or data.diverging_epoch.epoch >= 0
        if self.high_watermark != data.high_watermark:
            self.high_watermark = data.high_watermark
            is_new = True
        if self.log_start_offset != data.log_start_offset:
            self.log_start_offset = data.log_start_offset
            is_new = True
        if data.error_code:
            self.high_watermark = UNKNOWN_OFFSET
            is_new = True
        return is_new

    def __repr__(self) -> str:
        return (
            f"<Slot {self.topic or self.topic_id.hex()}-{self.key[1]} at {self.fetch_offset}, "
            f"{self.available_bytes} bytes available, reported {self.high_watermark}>"
        )
