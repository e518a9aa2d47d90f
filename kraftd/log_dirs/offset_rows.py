"""The rows of a log directory's checkpoints: recovery points, and log starts within segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.log.offset_checkpoint import TopicPartition, offset_row
from kraftd.log_dirs.found_logs import Damaged
from kraftd.log_dirs.log_table import LogTable


def offset_rows(
    path: str, tables: Iterable[LogTable], closed: Iterable[Mapping[TopicPartition, Damaged]]
) -> Slices[tuple[list[str], list[str]]]:
    """The rows of both, of the open logs there; closed ones keep what the start has found. Those of a slice
    are one text.
    """
    points, starts = list[str](), list[str]()
    texts = list[str]()  # of recovery points, by slice
    pace = Pace()
    for logs in tables:
        for key in logs.walk():
            if pace.spent(ROW_US):
                texts.append("".join(points))
                points.clear()
                yield
            if (log := logs.get(key)) is not None and log.parent == path:
                points.append(offset_row(key, log.recovery_point))
                if log.log_start > log.segments[0].base_offset:
                    starts.append(offset_row(key, log.log_start))
    for key, one in chain(*(each.items() for each in closed)):
        if one.parent == path:
            points.append(offset_row(key, one.found.recovery_point))
            if one.found.log_start:
                starts.append(offset_row(key, one.found.log_start))
    return [*texts, "".join(points)], starts
