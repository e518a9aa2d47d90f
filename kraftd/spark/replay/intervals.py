"""`partition_intervals` and `interval_totals`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kraftd.named_tuple import NamedTuple
from kraftd.spark.decoding.decode import LAST_OFFSET
from kraftd.spark.inputs.extent import BEFORE_THE_LOG
from kraftd.spark.replay.brokers import racks
from kraftd.spark.replay.configs import config_history
from kraftd.spark.replay.partitions import partition_replay
from kraftd.spark.replay.source import Replay, and_next, by_key, passed, without
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.configs import BROKER, TOPIC
from kraftd.spark.tables.filling import KEY
from kraftd.spark.tables.intervals import MIN_ISR

_KINDS = ("under_replicated", "under_min_isr", "leaderless", "offline")
_NUMBER = re.compile(r"\s*[+-]?\d{1,10}\s*")


class MinIsr(NamedTuple):
    """A value of `min.insync.replicas`, null if it is no number, and where it begins and ends."""

    value: int | None
    begin: tuple[int, int | None]
    end: tuple[int | None, int | None]

    def holds(self, offset: int) -> bool:
        return self.begin[0] <= offset < (LAST_OFFSET if self.end[0] is None else self.end[0])


class Change(NamedTuple):
    """Which brokers a condition of a partition concerns from an offset on; None if it does not hold."""

    place: tuple[int, int]
    brokers: list[int] | None


class Step(NamedTuple):
    """The time in which a condition held for the same brokers."""

    start: tuple[int | None, int]
    end: tuple[int | None, int | None]
    brokers: list[int]


def partition_intervals(replay: Replay) -> Rows:
    return replay.shared("partition_intervals", lambda replay: list(_intervals(replay)))


def _intervals(replay: Replay) -> Iterator[Row]:
    values = _min_isr_values(replay)
    rows = partition_replay(replay, whole=True)
    rows = [row for row in rows if _is_lacking(row) or _is_lacking(row, "old_")]
    for (topic_id, partition_id), group in by_key(rows, *KEY).items():
        last = group[-1]
        key = {"topic_id": topic_id, "topic_name": last["topic_name"], "partition_id": partition_id}
        own = values.get(last["topic_name"], []), values[None]
        changes: dict[str, list[Change]] = {kind: [] for kind in _KINDS}
        for row in group:
            for place in _places(row, own):
                meant = _conditions(row, _min_isr_at(place[0], own))
                for found, brokers in zip(changes.values(), meant, strict=True):
                    if brokers != (found[-1].brokers if found else None):
                        found.append(Change(place, brokers))
        removed = last["removed_offset"], last["removed_timestamp_ms"]
        for kind, found in changes.items():
            for steps in _steps(found, removed):
                yield {"kind": kind} | key | _interval(steps)


def _is_lacking(row: Row, prefix: str = "") -> bool:
    return row[f"{prefix}leader"] == -1 or _is_short(row, prefix)


def _is_short(row: Row, prefix: str = "") -> bool:
    """Return whether an ISR, if it is known, has fewer members than there are replicas."""
    isr, replicas = row[f"{prefix}isr"], row[f"{prefix}replicas"]
    return isr is not None and replicas is not None and len(isr) < len(replicas)


def _min_isr_values(replay: Replay) -> dict[str | None, list[MinIsr]]:
    """By topic, and by None for the cluster."""
    found: dict[str | None, list[MinIsr]] = {None: []}
    for row in config_history(replay):
        kind, resource = row["resource_type"], row["resource_name"]
        if row["name"] != MIN_ISR or not (kind == TOPIC or (kind == BROKER and resource == "")):
            continue
        value = int(row["value"]) if _NUMBER.fullmatch(row["value"]) else None
        if value is not None and not -(1 << 31) <= value < 1 << 31:
            value = None
        begin = row["valid_from_offset"]
        begins = BEFORE_THE_LOG if begin is None else begin, row["valid_from_ms"]
        ends = row["valid_to_offset"], row["valid_to_ms"]
        found.setdefault(resource if kind == TOPIC else None, []).append(MinIsr(value, begins, ends))
    return found


def _min_isr_at(offset: int, own: Iterable[list[MinIsr]]) -> int:
    """The value at an offset: the topic's, else the cluster's, else 1."""
    for values in own:
        if values and (value := next((one.value for one in values if one.holds(offset)), None)) is not None:
            return value
    return 1


def _places(row: Row, own: Sequence[list[MinIsr]]) -> list[Any]:
    """The record's place; while replicas lack also those at which a value begins or ends."""
    place = row["offset"], row["timestamp_ms"]
    if not any(own) or not _is_short(row):
        return [place]
    end = LAST_OFFSET if row["next_offset"] is None else row["next_offset"]
    changes = [change for values in own for one in values for change in (one.begin, one.end)]
    within = {change for change in changes if change[0] is not None and row["offset"] < change[0] < end}
    return [place, *sorted(within)]


def _conditions(row: Row, min_isr: int) -> tuple[list[int] | None, ...]:
    """The brokers that each of _KINDS means after a record, None where the condition does not hold."""
    replicas = row["replicas"] or []
    isr = replicas if row["isr"] is None else row["isr"]
    whole = without(replicas, row["adding_replicas"]) if row["adding_replicas"] else replicas
    offline = replicas if row["leader"] == -1 else None
    is_under_replicated, is_under_min = len(isr) < len(whole), len(isr) < min(min_isr, len(replicas))
    lacking = without(whole, isr) if is_under_replicated or is_under_min else None
    return (
        lacking if is_under_replicated else None,
        lacking if is_under_min else None,
        offline if isr or row["eligible_leader_replicas"] else None,
        offline,
    )


def _steps(changes: list[Change], removed: tuple[int | None, int | None]) -> Iterator[list[Step]]:
    """The steps of each interval in which a condition held."""
    steps: list[Step] = []
    for one, following in and_next(changes):
        if one.brokers is not None:
            start = one.place[0] if one.place[0] >= 0 else None, one.place[1]
            steps.append(Step(start, removed if following is None else following.place, one.brokers))
        if following is None or following.brokers is None:
            if steps:
                yield steps
            steps = []


def _interval(steps: list[Step]) -> Row:
    """An interval, with each broker's spans in it."""
    period = _period(steps[0].start, steps[-1].end)
    spans: dict[int, list[Row]] = {}
    ended: set[int] = set()
    for step in steps:
        for broker in step.brokers:
            own = spans.setdefault(broker, [])
            if own and broker not in ended:
                own[-1] = _period((own[-1]["start_offset"], own[-1]["start_timestamp_ms"]), step.end)
            else:
                own.append(_period(step.start, step.end))
        ended = spans.keys() - step.brokers
    return period | {
        "brokers": sorted(spans),
        "spans": [{"broker_id": broker} | span for broker in sorted(spans) for span in spans[broker]],
    }


def _period(start: tuple[int | None, int], end: tuple[int | None, int | None]) -> Row:
    return {
        "start_offset": start[0],
        "start_timestamp_ms": start[1],
        "end_offset": end[0],
        "end_timestamp_ms": end[1],
        "duration_ms": passed(start[1], end[1]),
    }


def interval_totals(replay: Replay) -> Rows:
    newest_ms = replay.newest_ms
    rack_of = racks(replay)
    groups: dict[Any, list[tuple[Any, int]]] = {}

    def add(row: Row, scope: str, name: str, period: Row) -> None:
        end_ms = newest_ms if period["end_timestamp_ms"] is None else period["end_timestamp_ms"]
        key = row["topic_id"], row["partition_id"]
        lasted_ms = end_ms - period["start_timestamp_ms"]
        groups.setdefault((row["kind"], scope, name), []).append((key, lasted_ms))

    for row in partition_intervals(replay):
        add(row, "topic", row["topic_name"], row)
        for span in row["spans"]:
            add(row, "broker", str(span["broker_id"]), span)
            add(row, "rack", rack_of.get(span["broker_id"], ""), span)
    return [
        {
            "kind": kind,
            "scope": scope,
            "name": name,
            "intervals": len(periods),
            "partitions": len({key for key, _ in periods}),
            "duration_ms": sum(lasted_ms for _, lasted_ms in periods),
            "longest_ms": max(lasted_ms for _, lasted_ms in periods),
        }
        for (kind, scope, name), periods in groups.items()
    ]
