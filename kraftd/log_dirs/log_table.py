"""Open logs by topic and partition, and how many of them each log directory has.

A new log goes to the directory with the fewest. Counting them all for each one would make the cost of N new
logs grow with the square of N.
"""

from __future__ import annotations

from collections import Counter

from kraftd.log.data.data_log import DataLog
from kraftd.log_dirs.offset_checkpoint import TopicPartition


class LogTable(dict[TopicPartition, DataLog]):
    """`counts`, by path of a log directory, may be shared with other tables. What changes the table and is
    not overridden here would not be counted: it is not used.
    """

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts

    def __setitem__(self, key: TopicPartition, log: DataLog) -> None:
        self.pop(key)
        self._counts[log.parent] += 1
        super().__setitem__(key, log)

    def __delitem__(self, key: TopicPartition) -> None:
        log = self[key]
        super().__delitem__(key)
        self._counts[log.parent] -= 1

    def pop(self, key: TopicPartition, default: None = None) -> DataLog | None:  # type: ignore[override]
        """Remove a log and return it; None if there is none."""
        log = super().pop(key, default)
        if log is not None:
            self._counts[log.parent] -= 1
        return log

    def setdefault(self, key: TopicPartition, default: DataLog) -> DataLog:
        """The log of a partition: the given one if there is none yet."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all logs."""
        for key in list(self):
            del self[key]
