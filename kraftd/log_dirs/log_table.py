"""Open logs by topic and partition, how many of them each log directory has, and which have changed theirs.

A new log goes to the directory with the fewest. Counting them all for each one would make the cost of N new
logs grow with the square of N.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kraftd.log.data.data_log import DataLog
from kraftd.log.offset_checkpoint import TopicPartition

GROUP_SIZE = 64
Group = tuple[str, int]  # GROUP_SIZE partitions of a topic: 0 to 63, 64 to 127, …


def group_of(key: TopicPartition) -> Group:
    """The group of a partition."""
    return key[0], key[1] // GROUP_SIZE


class LogTable(dict[TopicPartition, DataLog]):
    """`counts` are by path of a log directory, `changed` the paths of those that got a log or lost one.
    Tables may share both. What changes the table and is not overridden here would not count: it is not used.
    """

    def __init__(self, counts: Counter[str], changed: set[str]) -> None:
        super().__init__()
        self._counts = counts
        self._changed = changed
        self._groups: dict[Group, list[TopicPartition]] = {}

    def __setitem__(self, key: TopicPartition, log: DataLog) -> None:
        self.pop(key)
        self._counts[log.parent] += 1
        self._changed.add(log.parent)
        super().__setitem__(key, log)
        self._groups.setdefault(group_of(key), []).append(key)

    def __delitem__(self, key: TopicPartition) -> None:
        log = self[key]
        super().__delitem__(key)
        self._left(key, log)

    def pop(self, key: TopicPartition, default: None = None) -> DataLog | None:  # type: ignore[override]
        """Remove a log and return it; None if there is none."""
        log = super().pop(key, default)
        if log is not None:
            self._left(key, log)
        return log

    def keys_of(self, group: Group) -> list[TopicPartition]:
        """The partitions of a group that have a log here."""
        return list(self._groups.get(group, ()))

    def walk(self) -> Iterator[TopicPartition]:
        """All partitions, for work in slices: the table may change meanwhile.

        A list of all would be made in one event loop callback, and garbage collections would go through it.
        """
        for group in list(self._groups):
            yield from self.keys_of(group)

    def _left(self, key: TopicPartition, log: DataLog) -> None:
        group = group_of(key)
        self._groups[group].remove(key)
        if not self._groups[group]:
            del self._groups[group]
        self._counts[log.parent] -= 1
        self._changed.add(log.parent)

    def setdefault(self, key: TopicPartition, default: DataLog) -> DataLog:
        """The log of a partition: the given one if there is none yet."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all logs."""
        for key in list(self):
            del self[key]
