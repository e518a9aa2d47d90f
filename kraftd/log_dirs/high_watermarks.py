"""The checkpoint of high watermarks of each log directory, made anew only where something has changed.

With very many partitions of which a few are written to, all others' rows would be made again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.log.offset_checkpoint import HIGH_WATERMARKS, TopicPartition, offset_row
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.jobs import WriteJob
from kraftd.log_dirs.log_table import Group, group_of

MarkOf = Callable[[TopicPartition], int | None]  # None for a partition that the broker does not host yet


class HighWatermarks:
    """`_rows`: the rows of a group of partitions as one text for each directory that has some of them."""

    def __init__(self, directories: LogDirectories, mark_of: MarkOf) -> None:
        self._directories = directories
        self._mark_of = mark_of
        self._rows: dict[Group, list[tuple[str, str]]] = {}

    def __repr__(self) -> str:
        return f"<HighWatermarks, rows of {len(self._rows)} groups>"

    def checkpoints(self, changed: Iterable[TopicPartition]) -> Slices[list[WriteJob]]:
        """What replica.high.watermark.checkpoint.interval.ms asks for, given the partitions whose marks or
        logs are others than at the last call. A directory has none while logs of it are still to be opened.
        """
        pace, groups = Pace(), set[Group]()
        if not self._rows:  # what nothing has asked for since the start keeps its mark
            changed = self._directories.logs.walk()
        for keys in (changed, self._directories.futures.walk()):  # what futures have may have changed anyway
            for key in keys:
                if pace.spent(ROW_US):
                    yield
                groups.add(group_of(key))
        for group in sorted(groups):
            if pace.spent(3 * ROW_US * self._make_rows(group)):
                yield
        online = list(filter(self._directories.is_loaded, self._directories.online))
        texts: dict[str, list[str]] = {path: [] for path in online}
        for rows in self._rows.values():
            for path, text in rows:
                if path in texts:
                    texts[path].append(text)
        return [self._directories.write_job(path, HIGH_WATERMARKS, texts[path]) for path in online]

    def _make_rows(self, group: Group) -> int:
        """Make the rows of a group; returns how many partitions were looked at."""
        logs, futures = self._directories.logs, self._directories.futures
        keys = logs.keys_of(group)
        rows: dict[str, list[str]] = {}
        for key in keys:
            mark = self._mark_of(key)
            if mark is None:
                mark = self._directories.high_watermarks.get((logs[key].parent, key))
            if mark is not None:
                rows.setdefault(logs[key].parent, []).append(offset_row(key, mark))
                if (future := futures.get(key)) is not None:
                    row = offset_row(key, min(mark, future.log_end))
                    rows.setdefault(future.parent, []).append(row)
        if rows:
            self._rows[group] = [(path, "".join(own)) for path, own in rows.items()]
        else:
            self._rows.pop(group, None)
        return 1 + len(keys)
