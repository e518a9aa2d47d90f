"""The checks of a log of some hundred thousand records, without Spark: processes replay groups of partitions.

What concerns no partition is checked here, on a replay of all other records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial

from kraftd.named_tuple import NamedTuple
from kraftd.spark.inputs.layout import CheckpointFile
from kraftd.spark.replay.divided import Divided
from kraftd.spark.replay.processes import core_count, in_processes
from kraftd.spark.replay.source import Replay
from kraftd.spark.replay.topics import partition_counts
from kraftd.spark.tables.columns import Row
from kraftd.spark.validation.findings import STATE, break_text, comparable_checkpoints
from kraftd.spark.validation.replayed_comparisons import (
    epochs_go_back,
    first_damage,
    sides,
    table_difference,
)
from kraftd.spark.validation.replayed_invariants import OF_PARTITIONS, first_break, first_of, first_row

Counts = dict[str, int]


class _Found(NamedTuple):
    """What groups of partitions tell: rows by invariant, by checkpoint differences and, of the log and of the
    checkpoint, the partitions of each topic.
    """

    rows: dict[str, list[Row]]
    differences: dict[str, list[str]]
    counts: dict[str, tuple[Counts, Counts]]


class DividedChecks:
    """The findings of each check of a divided log. note takes what is no fault."""

    def __init__(self, divided: Divided, note: Callable[[str], None]) -> None:
        self._divided = divided
        self._note = note
        held = comparable_checkpoints(divided.extent)
        self._checkpoints = [each for each in held if each.path not in divided.unread]

    def unreadable(self) -> str | None:
        """The first damaged place, or epoch that goes back. A torn tail is neither."""
        extent = self._divided.extent
        return first_damage(extent, self._divided.damage) or epochs_go_back(extent, self._divided.places)

    def checkpoint_difference(self, checkpoint: CheckpointFile) -> str | None:
        """The first row, by table, that a checkpoint and the replayed prefix do not share. Raises InputError
        if the checkpoint cannot be read."""
        if checkpoint.path in self._divided.unread:
            raise self._divided.unread[checkpoint.path]
        both = sides(self._divided.base, checkpoint)
        for side, counts in zip(both, self._of_groups.counts[checkpoint.path], strict=True):
            side.shared("partition_counts", partial(_known, counts))
        for name in STATE:
            if name == "partitions":
                found = min(self._of_groups.differences[checkpoint.path], default=None)
            else:
                found = table_difference(*both, checkpoint, name, self._note)
            if found is not None:
                return found
        return None

    def first_break(self, name: str) -> str | None:
        """The first row that breaks an invariant."""
        if name not in OF_PARTITIONS:
            return first_break(self._divided.base, name)
        row = first_of(self._of_groups.rows[name])
        return None if row is None else break_text(self._divided.extent, row)

    @cached_property
    def _of_groups(self) -> _Found:
        paths = [checkpoint.path for checkpoint in self._checkpoints]
        whole = _Found(
            {name: [] for name in OF_PARTITIONS},
            {path: [] for path in paths},
            {path: ({}, {}) for path in paths},
        )
        count = min(core_count(), self._divided.count) or 1
        for found in in_processes(partial(self._groups, count), count):
            for name, rows in found.rows.items():
                whole.rows[name].extend(rows)
            for path in paths:
                whole.differences[path].extend(found.differences[path])
                for total, counts in zip(whole.counts[path], found.counts[path], strict=True):
                    for topic_id, partitions in counts.items():
                        total[topic_id] = total.get(topic_id, 0) + partitions
        return whole

    def _groups(self, processes: int, process: int) -> Iterator[_Found]:
        """The findings of every so many groups."""
        for number in range(process, self._divided.count, processes):
            replay = self._divided.group(number)
            found = _Found({}, {}, {})
            for name in OF_PARTITIONS:
                row = first_row(replay, name)
                found.rows[name] = [] if row is None else [row]
            for checkpoint in self._checkpoints:
                both = sides(replay, checkpoint)
                difference = table_difference(*both, checkpoint, "partitions", self._note)
                found.differences[checkpoint.path] = [] if difference is None else [difference]
                counts = [partition_counts(side) for side in both]
                found.counts[checkpoint.path] = (counts[0], counts[1])
            yield found


def _known(counts: Counts, _: Replay) -> Counts:
    return counts
