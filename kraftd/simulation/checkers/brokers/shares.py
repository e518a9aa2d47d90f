"""G4-G6: what members of a share group are given, and what becomes of it.

G4: a record is held by one member at a time. G5: what a member has accepted or rejected, with an answer, is
not delivered again. G6: what is delivered no more was accepted or rejected, or delivered as often as it may.
"""

from __future__ import annotations

from typing import Any

from kraftd.partition.share.states import ACCEPT, REJECT
from kraftd.simulation.brokers.broker_side import DELIVERY_COUNT_LIMIT, RECORD_LOCK_MS
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.schedule import MS

_LOCK_US = RECORD_LOCK_MS * MS * 9 // 10  # clocks may run fast


class Held:
    """What one session holds: offsets of a partition, and when the fetch was sent that acquired each.

    run: the broker, its start, and its epoch as leader. What is acquired is known nowhere else.
    """

    def __init__(self, key: PartitionKey, run: tuple[int, int, int]) -> None:
        self.key = key
        self.run = run
        self.offsets: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<Held of {self.key[1]}: {sorted(self.offsets)}>"


class ShareChecker(Checker):
    """See the module. A loss of power may take what the share coordinator had not flushed."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._held: list[Held] = []
        self._done: dict[PartitionKey, dict[int, int]] = {}  # when the acknowledgement was answered
        self._ended: dict[PartitionKey, set[int]] = {}  # accepted or rejected, with an answer or without
        self._counts: dict[PartitionKey, dict[int, int]] = {}  # the most deliveries, by offset
        self._unanswered: dict[PartitionKey, int] = {}
        self._cut: dict[PartitionKey, int] = {}  # where a log's end was lost
        self.has_lost_power = False

    def acquired(self, held: Held, rows: Any, sent_us: int, *, is_leader: bool) -> None:
        """Note records that a member is given by a fetch that was sent then."""
        now_us, key = self.world.schedule.now_us, held.key
        done, counts = self._done.get(key, {}), self._counts.setdefault(key, {})
        if held not in self._held:
            self._held.append(held)
        others = [one for one in self._held if one is not held and one.run == held.run and one.key == key]
        for offset in range(rows.first_offset, rows.last_offset + 1):
            is_stale = False  # its answer came after that of a later delivery, so its lock has ended
            for other in others:
                since_us = other.offsets.get(offset)
                if since_us is None:
                    continue
                is_stale = rows.delivery_count < counts.get(offset, 0) and now_us >= sent_us + _LOCK_US
                if not is_stale and now_us < since_us + _LOCK_US:
                    self.fail("G4", f"{offset} of {key[1]} is given to {held!r}, and {other!r} has it")
            if is_leader and done.get(offset, sent_us) < sent_us:
                self.fail("G5", f"{offset} of {key[1]} is given to {held!r}, and was acknowledged before")
            if not is_stale:
                held.offsets[offset] = sent_us
            counts[offset] = max(counts.get(offset, 0), rows.delivery_count)

    def acknowledging(self, held: Held, kinds: dict[int, int]) -> None:
        """Note what a member is about to acknowledge: it does not hold that any more."""
        for offset, kind in kinds.items():
            held.offsets.pop(offset, None)
            if kind in (ACCEPT, REJECT):
                self._ended.setdefault(held.key, set()).add(offset)

    def acknowledged(self, key: PartitionKey, kinds: dict[int, int]) -> None:
        """Note that it was answered without an error."""
        now_us, done = self.world.schedule.now_us, self._done.setdefault(key, {})
        for offset, kind in kinds.items():
            if kind in (ACCEPT, REJECT):
                done.setdefault(offset, now_us)
                self.world.trace.kinds["records of a share group acknowledged"] += 1

    def gave_up(self, held: Held) -> None:
        """Note that a session ends: it holds nothing any more."""
        if held in self._held:
            self._held.remove(held)
        held.offsets = {}

    def unanswered(self, key: PartitionKey) -> None:
        """Note that a fetch may have acquired records of which its member does not know."""
        self._unanswered[key] = self._unanswered.get(key, 0) + 1

    def at_rest(self, key: PartitionKey, log_start: int, end: int) -> None:
        """G6 of a partition of which nothing is delivered any more, but what its log has lost."""
        ended, counts = self._ended.get(key, set()), self._counts.get(key, {})
        unknown = self._unanswered.get(key, 0)
        for offset in range(log_start, min(end, self._cut.get(key, end))):
            if offset not in ended and counts.get(offset, 0) + unknown < DELIVERY_COUNT_LIMIT:
                text = f"after {counts.get(offset, 0)} deliveries and {unknown} fetches without an answer"
                self.fail("G6", f"{offset} of {key[1]} is not delivered any more {text}")
        self.world.trace.kinds["partition of a share group delivered"] += end > log_start

    def lost_end(self, key: PartitionKey, end: int) -> None:
        """Note that other records may have an offset now than those that were acknowledged."""
        self._cut[key] = min(end, self._cut.get(key, end))
        self.lost_power()

    def lost_power(self) -> None:
        """Forget what was acknowledged; it may be delivered again."""
        self.has_lost_power = True
        self._done.clear()
