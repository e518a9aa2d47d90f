"""`configs` and `config_history`."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.history.names import resource_type
from kraftd.spark.replay.source import PLACE, Replay, by_key, current, in_order, validity, with_next
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.configs import KEY, TOPIC
from kraftd.spark.tables.topics import CREATED, REMOVED


def configs(replay: Replay) -> Rows:
    rows = config_history(replay) if replay.extent.replays_history else _history(replay, whole=False)
    return [row | {"changed_offset": row["valid_from_offset"]} for row in current(rows)]


def config_history(replay: Replay) -> Rows:
    return replay.shared("config_history", lambda replay: _history(replay, whole=True))


def gone_configs(replay: Replay) -> Rows:
    """The configs that existed when their topic was removed, and were not set again since."""
    found = []
    for rows in by_key(_steps(replay, whole=False), *KEY).values():
        last = next((row for row in reversed(rows) if row["type"] != REMOVED), None)
        if last is not None and last["value"] is not None and last["next_offset"] is not None:
            removed = {"removed_offset": last["next_offset"]}
            found.append({name: last[name] for name in (*KEY, "value")} | removed)
    return found


def _history(replay: Replay, *, whole: bool) -> Rows:
    return [
        {name: row[name] for name in (*KEY, "value")}
        | {"resource_type_name": resource_type(row["resource_type"])}
        | validity(row)
        for row in _steps(replay, whole=whole)
        if row["value"] is not None
    ]


def _steps(replay: Replay, *, whole: bool) -> Iterator[Row]:
    """The records of configs, and for each config of a topic one row a removal of a topic of that name."""
    read = replay.history if whole else replay.state
    rows = read([*KEY, "value"], ["ConfigRecord"], dated_by=KEY)
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["resource_type"] == TOPIC:
            names.setdefault(row["resource_name"], {})[row["name"]] = None
    removals: Rows = [
        removal | {"resource_type": TOPIC, "resource_name": topic, "name": name, "value": None}
        for topic, removal in _removals(replay, whole=whole)
        for name in names.get(topic, ())
    ]
    return with_next(in_order([*rows, *removals]), *KEY)


def _removals(replay: Replay, *, whole: bool) -> list[tuple[str, Row]]:
    """The name, offset and time of each removal of a topic, as far as the log has it."""
    columns, types = ["topic_id", "name"], [CREATED, REMOVED]
    rows = (replay.history if whole else replay.state)(columns, types)
    found = []
    for group in by_key(rows + replay.before(columns, types, whole=whole), "topic_id").values():
        name = max((row["name"] for row in group if row["name"] is not None), default=None)
        ends = [row for row in group if row["type"] == REMOVED]
        if ends and name is not None:
            end = max(ends, key=lambda row: row["offset"])
            found.append((name, {key: end[key] for key in PLACE}))
    return found
