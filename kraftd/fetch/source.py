"""The interface of the partitions that fetch sessions serve: a log, a topic, or made-up numbers in a test.

Its methods get a slot, which names the partition and the position to read from. The source's owner calls
`ParkedFetches.changed` after an append, a moved mark, a new leader, a deletion, or when the id of a topic
becomes known.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import Protocol

from kraftd.fetch.slots import Slot
from kraftd.messages.fetch_response import PartitionData
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid

EVERYTHING_BYTES = 1 << 62  # as many as any fetch waits for


class Reader(NamedTuple):
    """How a fetch reads: a follower's id or -1, whether it stops at the last stable offset, the reader's
    identity, and a follower's broker epoch, or -1 (KIP-903). `rack` is a consumer's, or "" (KIP-392).

    A source authorizes `identity`; if another identity continues a session, all its partitions are checked
    anew.
    """

    replica_id: int = -1
    isolation_level: int = 0
    identity: Hashable = None
    broker_epoch: int = -1
    rack: str = ""

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


class PartitionStatus(IntEnum):
    """A partition's effect on a fetch that may wait."""

    SERVED = 0  # the fetch waits for its bytes
    NOT_SERVED = 1  # its error is reported, but the fetch waits for the other partitions
    FAILED = 2  # an error, a diverging epoch or a preferred replica: the fetch is answered at once


class Availability(NamedTuple):
    """What a slot can read of its partition: `available_bytes` from the slot's fetch offset on.

    They are at most `slot.max_bytes`, at least 1 if there is anything, and 0 unless the slot is served. Of a
    reader behind the newest segment they are EVERYTHING_BYTES: as in Kafka, its fetch waits for no more.
    """

    status: PartitionStatus
    available_bytes: int = 0


class PartitionSource(Protocol):
    """The partitions. Neither method may change a slot."""

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The topic of that id; None while unknown."""

    def availability(self, slot: Slot, reader: Reader) -> Availability:
        """The partition's state, without reading it."""

    def fetched(self, slot: Slot, reader: Reader, now_ms: int) -> tuple[Availability, int]:
        """Note that a follower has everything below the slot's fetch offset. Called by each of its fetches,
        but not where neither the slot nor the partition has changed since the one before. Returns the
        partition's state after that, and the microseconds of work that follow, for the pace.
        """

    def read(
        self, slot: Slot, reader: Reader, max_bytes: int, at_least_one: bool
    ) -> tuple[PartitionData, int]:
        """The answer for the partition, and the bytes of its records.

        Records are whole batches of at most `max_bytes`; with `at_least_one` the first may be larger.
        """
