"""Equal values kept once: a million partitions repeat few ids and few tuples."""

from __future__ import annotations

from typing import Any

from kraftd.metadata.state import PartitionState

# Small clusters repeat few tuples of replicas; large ones repeat none, and looking for them would only cost.
_TUPLES_LIMIT = 1 << 13


class Sharing:
    """The one object that is kept of equal values."""

    __slots__ = ("_ids", "_values")

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self._ids: dict[bytes, bytes] = {}

    def one(self, value: Any) -> Any:
        """The one that is equal, of a tuple of ints or of ids."""
        values = self._values
        kept = values.get(value)
        if kept is not None:
            return kept
        if len(values) < _TUPLES_LIMIT:
            values[value] = value
        return value

    def ids(self, ids: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """As one, for directory ids: each id is kept once, however many tuples have it."""
        kept: tuple[bytes, ...] | None = self._values.get(ids)
        if kept is not None:
            return kept
        known = self._ids
        shared: tuple[bytes, ...] = self.one(tuple([known.setdefault(one, one) for one in ids]))
        return shared

    def keeps(self, one: bytes) -> bool:
        """Return whether this very object is the one of a directory id; it is from now on."""
        known = self._ids
        if known.get(one) is one:
            return True
        known[one] = one
        return False

    def __repr__(self) -> str:
        return f"<Sharing {len(self._values)} tuples, {len(self._ids)} ids>"


class KnownPartitions:
    """Partitions of late by their replicas: the next one on the same replicas is most often equal in all
    else, and then the same object.

    Where replicas hardly repeat, nothing is remembered for a while: looking would only cost.
    """

    __slots__ = ("_since", "by_replicas")

    MAX_STATES = 1 << 14
    REST_PARTITIONS = 1 << 18

    def __init__(self) -> None:
        self.by_replicas: dict[tuple[int, ...], PartitionState] = {}
        self._since = 0

    def remember(self, state: PartitionState, partition_count: int) -> None:
        """Note a state that was made; there are `partition_count` partitions now."""
        known = self.by_replicas
        if len(known) >= self.MAX_STATES:
            few_were_equal = partition_count - self._since < 2 * self.MAX_STATES
            known.clear()
            self._since = partition_count + (self.REST_PARTITIONS if few_were_equal else 0)
        if partition_count >= self._since:
            known[state.replicas] = state

    def __repr__(self) -> str:
        return f"<KnownPartitions {len(self.by_replicas)} of {self.MAX_STATES}>"
