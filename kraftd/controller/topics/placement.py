"""The placement of new replicas: striped over racks, then over the brokers of a rack (KIP-36, KIP-631).

Replicas of a partition go to different racks as long as there are racks. Each partition starts one rack after
the previous one and takes the next brokers of each rack, so that leaders and followers spread evenly. The
first replica, which will lead, is never on a fenced broker. The others are only if a rack has no unfenced one
left. Randomness choose the beginning of a stripe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from kraftd.controller.context import Randomness
from kraftd.ground.refusal import Refusal
from kraftd.metadata.state import BrokerState
from kraftd.wire.error_code import ErrorCode

PLACED_PER_PACE_CHECK = 100


class Racks:
    """The usable brokers by rack, sorted: made once per operation, shared by the placement of all its topics.

    A broker in controlled shutdown that is not yet fenced, or with all its directories cordoned, gets no new
    replica. A fenced one counts and may get some.
    """

    __slots__ = ("broker_count", "fenced", "unfenced", "unfenced_count")

    def __init__(self, brokers: Iterable[BrokerState]) -> None:
        racks: dict[str | None, tuple[list[int], list[int]]] = {}
        for broker in brokers:
            if broker.in_controlled_shutdown and not broker.fenced:
                continue
            if not broker.has_uncordoned_directory():
                continue
            racks.setdefault(broker.rack, ([], []))[broker.fenced].append(broker.id)
        names = sorted(racks, key=lambda rack: (rack is not None, rack or ""))
        self.unfenced = [sorted(racks[name][0]) for name in names]
        self.fenced = [sorted(racks[name][1]) for name in names]
        self.unfenced_count = sum(map(len, self.unfenced))
        self.broker_count = self.unfenced_count + sum(map(len, self.fenced))

    def check(self, replication_factor: int) -> None:
        """Raises Refusal(INVALID_REPLICATION_FACTOR) if that many replicas cannot be placed."""
        if replication_factor <= 0:
            problem = f"a replication factor of {replication_factor} is not positive"
        elif not self.unfenced_count:
            problem = "every broker is fenced, shutting down or has all its log directories cordoned"
        elif replication_factor > self.broker_count:
            problem = (
                f"a replication factor of {replication_factor} needs as many brokers, but only "
                f"{self.broker_count} are registered and not shutting down or cordoned"
            )
        else:
            return
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, problem)

    def __repr__(self) -> str:
        return f"<{len(self.unfenced)} racks, {self.unfenced_count} of {self.broker_count} brokers unfenced>"


class _Wheel:
    """Brokers in a ring: one revolution returns each once, and each revolution starts one further."""

    __slots__ = ("brokers", "drawn", "offset", "revolution")

    def __init__(self, brokers: list[int], rng: Randomness) -> None:
        self.brokers = brokers
        self.drawn = 0
        self.offset = rng.below(len(brokers)) if brokers else 0
        self.revolution = 0

    def next(self, revolution: int) -> int:
        """The next broker of this revolution; -1 after all."""
        count = len(self.brokers)
        if not count:
            return -1
        if self.revolution != revolution:
            self.revolution = revolution
            self.drawn = 0
            self.offset = (self.offset + 1) % count
        if self.drawn >= count:
            return -1
        broker = self.brokers[(self.drawn + self.offset) % count]
        self.drawn += 1
        return broker


class Striper:
    """Places the partitions of one topic, one after the other.

    Raises Refusal(INVALID_REPLICATION_FACTOR) if there cannot be that many replicas.
    """

    __slots__ = (
        "_fenced",
        "_offset",
        "_order",
        "_racks",
        "_replication_factor",
        "_revolution",
        "_rng",
        "_unfenced",
    )

    def __init__(self, racks: Racks, rng: Randomness, replication_factor: int) -> None:
        self._racks = racks
        self._rng = rng
        self._unfenced: list[_Wheel] = []
        self._fenced: list[_Wheel] = []
        for unfenced, fenced in zip(racks.unfenced, racks.fenced, strict=True):
            self._fenced.append(_Wheel(fenced, rng))
            self._unfenced.append(_Wheel(unfenced, rng))
        self._order = list(range(len(self._unfenced)))
        self._offset = rng.below(len(self._order)) if self._order else 0
        self._revolution = 0
        self._replication_factor = replication_factor
        racks.check(replication_factor)

    def place(self) -> tuple[int, ...]:
        """The replicas of the next partition, the preferred leader first."""
        # Once every unfenced broker has led, shuffle, so that the next round does not pair the same brokers.
        if self._revolution == self._racks.unfenced_count and self._revolution > 1:
            self._shuffle()
            self._revolution = 0
        order = self._order
        rack_count = len(order)
        if self._offset == rack_count:
            self._offset = 0
        revolution = self._revolution
        leader_rack = self._offset
        while (leader := self._unfenced[order[leader_rack]].next(revolution)) < 0:
            leader_rack = (leader_rack + 1) % rack_count
        replicas = [leader]
        rack = self._offset
        skipped = False  # the leader's rack is skipped once, because the leader is from it
        while len(replicas) < self._replication_factor:
            if rack == leader_rack and not skipped:
                skipped = True
            else:
                broker = self._unfenced[order[rack]].next(revolution)
                if broker < 0:
                    broker = self._fenced[order[rack]].next(revolution)
                if broker >= 0:
                    replicas.append(broker)
            rack = (rack + 1) % rack_count
        self._revolution += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        self._order = shuffled(self._order, self._rng)
        for fenced, unfenced in zip(self._fenced, self._unfenced, strict=True):
            fenced.brokers = shuffled(fenced.brokers, self._rng)
            unfenced.brokers = shuffled(unfenced.brokers, self._rng)


def shuffled(items: list[int], rng: Randomness) -> list[int]:
    """A shuffled copy (the original is shared between topics)."""
    mixed = list(items)
    for last in range(len(mixed) - 1, 0, -1):
        other = rng.below(last + 1)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


def place(
    racks: Racks, rng: Randomness, partition_count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """The replicas of that many new partitions.  Raises Refusal(INVALID_REPLICATION_FACTOR)."""
    return list(chain.from_iterable(rounds(racks, rng, partition_count, replication_factor)))


def rounds(
    racks: Racks, rng: Randomness, partition_count: int, replication_factor: int
) -> Iterator[list[tuple[int, ...]]]:
    """The result of ``place``, in parts."""
    if len(racks.unfenced) == 1 and not racks.fenced[0]:
        yield from _rounds_of_ring(racks, rng, partition_count, replication_factor)
        return
    striper = Striper(racks, rng, replication_factor)
    for first in range(0, partition_count, PLACED_PER_PACE_CHECK):
        yield [striper.place() for _ in range(min(PLACED_PER_PACE_CHECK, partition_count - first))]


def _rounds_of_ring(
    racks: Racks, rng: Randomness, partition_count: int, replication_factor: int
) -> Iterator[list[tuple[int, ...]]]:
    """The placement by a Striper of one rack without fenced brokers, some rounds of its ring at a time."""
    brokers = racks.unfenced[0]
    count = len(brokers)
    first = rng.below(count) if count else 0
    rng.below(1)  # chooses the first rack
    racks.check(replication_factor)
    left = partition_count
    placed: list[tuple[int, ...]] = []
    while True:
        starts = range(min(count, left))
        length = len(starts) + replication_factor - 1
        ring = brokers[first : first + length]
        while len(ring) < length:
            ring += brokers[: length - len(ring)]
        placed += [tuple(ring[start : start + replication_factor]) for start in starts]
        left -= len(starts)
        if not left:
            yield placed
            return
        if len(placed) >= PLACED_PER_PACE_CHECK:
            yield placed
            placed = []
        brokers = shuffled(brokers, rng)  # each broker leads once more, with other followers
