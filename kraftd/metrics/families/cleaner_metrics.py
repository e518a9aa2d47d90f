"""Kafka's metrics of the log cleaner, and of the logs that it cannot clean.

A process without the broker role, or with log.cleaner.enable=false, has no samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftd.log_dirs.cleaner import LogCleaner
from kraftd.metrics.families.family import Bean, Family, ReadOne, Samples
from kraftd.metrics.state.readings import Readings, broker_of

_CLEANER = Bean("kafka.log", "LogCleaner")
_LOGS = Bean("kafka.log", "LogCleanerManager")
_DIRECTORY = ("logDirectory",)


def cleaner_of(readings: Readings) -> LogCleaner | None:
    """The log cleaner of the process, if it has one that runs."""
    found = readings.log_cleaner
    return found if found is not None and found.looked_at_ms is not None else None


def _of_cleaner(read: Callable[[LogCleaner], int]) -> ReadOne:
    def read_one(readings: Readings) -> int | None:
        cleaner = cleaner_of(readings)
        return None if cleaner is None else read(cleaner)

    return read_one


def _copied_percent(cleaner: LogCleaner) -> int:
    return 100 * cleaner.stats.written_bytes // max(1, cleaner.stats.copied_bytes)


def _idle_ms(readings: Readings) -> int | None:
    cleaner = cleaner_of(readings)
    if cleaner is None or cleaner.looked_at_ms is None:
        return None
    return max(0, readings.wall_ms - cleaner.looked_at_ms)


def _by_directory(read: Callable[[tuple[int, int]], int]) -> Callable[[Readings], Samples]:
    def samples(readings: Readings) -> Iterator[tuple[tuple[str, ...], int]]:
        cleaner, broker = cleaner_of(readings), broker_of(readings)
        if cleaner is None or broker is None:
            return
        for path in broker.cordoning.ids:
            yield (path,), read(cleaner.uncleanable_of(path))

    return samples


FAMILIES: tuple[Family, ...] = (
    _CLEANER.gauge(
        "max-buffer-utilization-percent",
        "how full the last cleaning made the table of keys",
        _of_cleaner(lambda one: int(100 * one.stats.buffer_utilization)),
    ),
    _CLEANER.gauge(
        "cleaner-recopy-percent",
        "bytes that the last cleaning wrote, of 100 bytes that it read to copy them",
        _of_cleaner(_copied_percent),
    ),
    _CLEANER.gauge(
        "max-clean-time-secs",
        "how long the last cleaning took, in seconds; 0 before the first",
        _of_cleaner(lambda one: one.stats.elapsed_ms // 1000),
    ),
    _CLEANER.gauge(
        "max-compaction-delay-secs",
        "for how long a log had waited beyond max.compaction.lag.ms when one was last chosen, in seconds",
        _of_cleaner(lambda one: one.stats.overdue_ms // 1000),
    ),
    _CLEANER.gauge(
        "DeadThreadCount",
        "always 0, because the cleaner has no thread of its own that could end",
        _of_cleaner(lambda one: 0),
    ),
    _LOGS.family(
        "gauge",
        "uncleanable-partitions-count",
        "logs that cannot be cleaned; the log of the process, the status page and the doctor name them",
        _by_directory(lambda found: found[0]),
        _DIRECTORY,
    ),
    _LOGS.family(
        "gauge",
        "uncleanable-bytes",
        "dirty bytes of logs that cannot be cleaned",
        _by_directory(lambda found: found[1]),
        _DIRECTORY,
    ),
    _LOGS.gauge(
        "max-dirty-percent",
        "the dirty part of the log with the largest one, in percent, when one was last looked for",
        _of_cleaner(lambda one: int(100 * one.stats.dirtiest_ratio)),
    ),
    _LOGS.gauge(
        "time-since-last-run-ms",
        "milliseconds since a log to clean was last looked for",
        _idle_ms,
    ),
)
