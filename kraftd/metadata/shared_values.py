"""Keeps one object for equal values: a million partitions repeat few ids and few tuples."""

from __future__ import annotations

from typing import Any

from kraftd.metadata.state import PartitionState

# Small clusters repeat few tuples of replicas. Large ones repeat none, so a search would only cost time.
_TUPLES_LIMIT = 1 << 13


class SharedValues:
    """Keeps one object for equal values."""

    __slots__ = ("_ids", "_values")

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self._ids: dict[bytes, bytes] = {}

    def one(self, value: Any) -> Any:
        """The kept object equal to a tuple of ints or of ids."""
        values = self._values
        kept = values.get(value)
        if kept is not None:
            return kept
        if len(values) < _TUPLES_LIMIT:
            values[value] = value
        return value

    def ids(self, ids: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """As ``one``, for directory ids: each id is kept once, in however many tuples it is."""
        kept: tuple[bytes, ...] | None = self._values.get(ids)
        if kept is not None:
            return kept
        known = self._ids
        shared: tuple[bytes, ...] = self.one(tuple([known.setdefault(one, one) for one in ids]))
        return shared

    def keeps(self, directory_id: bytes) -> bool:
        """Return whether this very object was the kept one of its directory id; from now on it is."""
        known = self._ids
        if known.get(directory_id) is directory_id:
            return True
        known[directory_id] = directory_id
        return False

    def __repr__(self) -> str:
        return f"<SharedValues {len(self._values)} tuples, {len(self._ids)} ids>"


class KnownPartitions:
    """Recent partitions by their replicas. The next partition on the same replicas is usually equal in all
    else, and then becomes the same object.

    If replicas hardly repeat, nothing is remembered for a while, because a search would only cost time.
    """

    __slots__ = ("_since", "by_replicas")

    MAX_STATES = 1 << 14
    REST_PARTITIONS = 1 << 18

    def __init__(self) -> None:
        self.by_replicas: dict[tuple[int, ...], PartitionState] = {}
        self._since = 0

    def remember(self, state: PartitionState, partition_count: int) -> None:
        """Remember a new state; `partition_count` is how many partitions exist now."""
        known = self.by_replicas
        if len(known) >= self.MAX_STATES:
            few_were_equal = partition_count - self._since < 2 * self.MAX_STATES
            known.clear()
            self._since = partition_count + (self.REST_PARTITIONS if few_were_equal else 0)
        if partition_count >= self._since:
            known[state.replicas] = state

    def __repr__(self) -> str:
        return f"<KnownPartitions {len(self.by_replicas)} of {self.MAX_STATES}>"


class EqualPartitions:
    """Recent partitions that records have changed one by one. Those of a broker are mostly equal before an
    election, and so afterwards, and become the same object again.
    """

    __slots__ = ("_states",)

    MAX_STATES = 1 << 12

    def __init__(self) -> None:
        self._states: dict[tuple[object, ...], PartitionState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def one(self, state: PartitionState) -> PartitionState:
        """The kept object equal to a state; without one, the state is kept."""
        key = state.replicas, state.leader, state.leader_epoch, state.partition_epoch
        kept = self._states.get(key)
        if kept == state:
            return kept
        if len(self._states) >= self.MAX_STATES:
            self._states.clear()
        self._states[key] = state
        return state

    def __repr__(self) -> str:
        return f"<EqualPartitions {len(self)} of {self.MAX_STATES}>"
