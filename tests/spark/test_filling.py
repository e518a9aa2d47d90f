"""Partitions filled by column, beside the replay record by record, on random histories."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.replay.partitions import partition_replay
from kraftd.spark.replay.source import Replay
from kraftd.spark.replay.topics import topic_lives
from kraftd.spark.tables import partition_records
from kraftd.spark.tables.filling import CLEARED, KEY, PLACE, Clears, fill
from kraftd.spark.tables.partition_records import divided, parts_of, read_records
from kraftd.spark.tables.partitions import REPLAYED, reads_of
from kraftd.spark.timeline import Timeline
from tests.spark.images import Rows, in_order
from tests.spark.test_tables import Story
from tests.spark.test_truth import behind_a_checkpoint

NAMES = [name for name in REPLAYED if name not in ("topic_name", "created_offset") and "removed" not in name]
GROUPS = 3


def filled(timeline: Timeline, replay: Replay, *, whole: bool) -> Rows:
    """What tasks make of a few records at a time, group by group."""
    read = replay.history if whole else replay.state
    clears = pa.Table.from_pylist(read([*PLACE, "topic_name"], [CLEARED]))
    lives = [{"topic_id": key, **life} for key, life in topic_lives(replay, whole=whole).items()]
    fields = [("topic_id", pa.string()), ("name", pa.string()), ("removed_offset", pa.int64())]
    meant = Clears(clears, pa.Table.from_pylist(lives, pa.schema(fields)))
    groups: list[list[pa.Table]] = [[] for _ in range(GROUPS)]
    aborted = [(one.start, one.stop - 1) for one in replay.aborted]
    for each in reads_of(timeline, whole=whole):
        for batch in divided(read_records(each, aborted, permissive=False), GROUPS):
            for place, blob in zip(*batch.to_pydict().values(), strict=True):
                groups[place].append(pa.ipc.open_stream(blob).read_all())
    parts = [list(parts_of(pa.concat_tables(group), GROUPS)) for group in groups if group]
    assert max(map(len, parts)) > 1
    return [
        row
        for part in chain.from_iterable(parts)
        for row in fill(part, NAMES, last=not whole, clears=meant if len(clears) else None).to_pylist()
    ]


def expected(replay: Replay, *, whole: bool) -> Rows:
    rows = []
    for row in partition_replay(replay, whole=whole):
        if row["next_offset"] == row["removed_offset"]:  # what follows is the topic's removal
            row = row | {"next_offset": None, "next_ms": None}
        if whole or row["next_offset"] is None:
            rows.append({name: row[name] for name in NAMES})
    return rows


@pytest.mark.parametrize("seed", range(50, 52))
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("begins_at_0", [True, False])
def test_partitions_filled_by_column_are_those_of_a_replay(
    seed: int, whole: bool, begins_at_0: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_records, "ROWS_PER_BLOCK", 40)
    monkeypatch.setattr(partition_records, "ROWS_PER_PART", 8)
    path = Story(tmp_path / "node", seed=seed).directory.path if begins_at_0 else None
    path = path or behind_a_checkpoint(tmp_path, seed)[0]
    log = committed_log(find_replicas([str(path)]))
    timeline = Timeline(cast(Any, None), log, log.end_offset)
    replay = Replay(timeline)
    found = filled(timeline, replay, whole=whole)
    assert len(found) > 10
    assert in_order(found) == in_order(expected(replay, whole=whole))
    assert {tuple(row[name] for name in KEY) for row in found}
