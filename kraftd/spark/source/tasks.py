"""The tasks of a read, batch or streaming: one for each split that may hold wanted records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from kraftd.spark.inputs.planning import Split
from kraftd.spark.source.reading import Wanted


@dataclass
class SplitPartition(InputPartition):
    """One task's share: a split, and the wanted records."""

    split: Split
    wanted: Wanted


def plan_tasks(
    splits: Sequence[Split], wanted: Wanted, first: int, last: int, *, tail: bool = False
) -> list[SplitPartition]:
    """The tasks that read the wanted records of offsets first to last; with tail also the torn tail behind
    last, if mode PERMISSIVE keeps it.
    """
    first, last = max(first, wanted.first_offset), min(last, wanted.last_offset)
    bounded = Wanted(
        first,
        last,
        wanted.first_timestamp_ms,
        wanted.last_timestamp_ms,
        wanted.types,
        wanted.topic_ids,
    )

    def holds(split: Split) -> bool:
        if split.first_offset == split.next_offset:
            return first <= split.first_offset <= last + tail
        return split.first_offset <= last and split.next_offset > first

    return [SplitPartition(split, bounded) for split in splits if holds(split)]
