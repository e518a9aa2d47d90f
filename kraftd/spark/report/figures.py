"""The numbers of the report: each at most a few hundred rows, however long the log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraftd.spark.report.plots import DAY_MS
from kraftd.spark.report.written_tables import Rows, WrittenTables, first

BUCKETS = 200
MOST_ROWS = 20
MOST_BROKERS = 500
MOST_DAYS = 400
MOST_WORST = 10
MAX_OPERATIONS = 200
_UP, _DOWN = "ascending", "descending"
_OF_PARTITION = [("topic_name", _UP), ("partition_id", _UP)]
_KINDS = ("offline", "under_min_isr", "under_replicated")


class Span:
    """The time from the first to the last record, in BUCKETS parts of equal length."""

    def __init__(self, first_ms: int, last_ms: int) -> None:
        self.first_ms, self.last_ms = first_ms, last_ms
        self.width_ms = max(1, (last_ms - first_ms) // BUCKETS + 1)

    def bucket(self, times_ms: Any) -> Any:
        """The part in which a time lies, as its first millisecond; the first one for what is older."""
        part = pc.divide(pc.subtract(times_ms, self.first_ms), self.width_ms)
        return pc.add(pc.multiply(pc.max_element_wise(part, 0), self.width_ms), self.first_ms)

    def lasted(self) -> ds.Expression:
        """How long an interval lasted; what has not ended lasts up to the last record."""
        return pc.subtract(
            pc.coalesce(ds.field("end_timestamp_ms"), self.last_ms), ds.field("start_timestamp_ms")
        )


def find_span(tables: WrittenTables) -> Span:
    """The span of the log; of an empty one, nothing."""
    (row,) = tables.grouped("records", {}, [("timestamp_ms", "min"), ("timestamp_ms", "max")]).to_pylist()
    return Span(0, 0) if row["timestamp_ms_min"] is None else Span(*row.values())


def partitions_over_time(tables: WrittenTables, span: Span) -> Rows:
    """How many partitions there were at the end of each part of the span in which that changed."""
    keys = {name: ds.field(name) for name in ("topic_id", "partition_id")}
    begun = tables.grouped("partition_history", keys, [("valid_from_ms", "min")])
    changes: Counter[int] = Counter()
    # Those of a checkpoint are older than the log, and have no time.
    times = pc.fill_null(begun["valid_from_ms_min"], span.first_ms)
    _count(changes, span.bucket(times))
    counts = {
        row["topic_id"]: row["partition_id_count"]
        for row in begun.group_by("topic_id").aggregate([("partition_id", "count")]).to_pylist()
    }
    removed = ds.field("valid_to_ms").is_valid()
    for batch in tables.batches("topic_history", ["topic_id", "valid_to_ms"], removed):
        for topic_id, at in zip(
            batch["topic_id"].to_pylist(), span.bucket(batch["valid_to_ms"]).to_pylist(), strict=True
        ):
            changes[at] -= counts.get(topic_id, 0)
    total = 0
    rows = []
    for at, change in sorted(changes.items()):
        total += change
        rows.append({"at_ms": at, "change": change, "partitions": total})
    return rows


def _count(counts: Counter[Any], values: pa.Array | pa.ChunkedArray) -> None:
    """Add how often each value occurs."""
    for found in pc.value_counts(values).to_pylist():
        counts[found["values"]] += found["counts"]


def moves_over_time(tables: WrittenTables, span: Span) -> Rows:
    """Leader moves of each part of the span, by cause."""
    return _over_time(tables, "leader_moves", span, "cause", "moves")


def operations_over_time(tables: WrittenTables, span: Span) -> Rows:
    """Admin operations of each part of the span, by action."""
    return _over_time(tables, "audit", span, "action", "operations")


def _over_time(tables: WrittenTables, name: str, span: Span, by: str, what: str) -> Rows:
    keys = {"at_ms": span.bucket(ds.field("timestamp_ms")), by: ds.field(by)}
    found = tables.grouped(name, keys, [("offset", "count")]).rename_columns(["at_ms", by, what])
    rows: Rows = found.sort_by([("at_ms", _UP), (by, _UP)]).to_pylist()
    return rows


def unhealthy_over_time(tables: WrittenTables, span: Span) -> Rows:
    """The most unhealthy partitions at a time, by kind, in each part of the span in which that changed.

    So a short incident is as high as it was. A row follows where fewer were left in the next part.
    """
    changes: defaultdict[str, list[Any]] = defaultdict(list)
    for column, sign in (("start_timestamp_ms", 1), ("end_timestamp_ms", -1)):
        keys = {"at_ms": ds.field(column), "kind": ds.field("kind")}
        found = tables.grouped("partition_intervals", keys, [(column, "count")], ds.field(column).is_valid())
        for kind in found["kind"].unique().to_pylist():
            rows = found.filter(pc.equal(found["kind"], kind))
            changes[kind].append((rows["at_ms"].to_numpy(), rows[f"{column}_count"].to_numpy() * sign))
    return [row for kind, of_it in sorted(changes.items()) for row in _most_of(kind, of_it, span)]


def _most_of(kind: str, changes: Sequence[Any], span: Span) -> Rows:
    """The rows of a kind, from pairs of times and changes of the number."""
    times, places = np.unique(np.concatenate([at for at, _ in changes]), return_inverse=True)
    net: Any = np.zeros(len(times), np.int64)
    np.add.at(net, places, np.concatenate([count for _, count in changes]))
    after = np.cumsum(net)
    parts = span.bucket(pa.array(times)).to_numpy()
    begins = np.flatnonzero(np.append(True, parts[1:] != parts[:-1]))
    left = after[np.append(begins[1:], len(parts)) - 1]
    most = np.maximum(np.maximum.reduceat(after, begins), np.append(0, left[:-1]))
    found: Rows = []
    for at, high, rest in zip(parts[begins].tolist(), most.tolist(), left.tolist(), strict=True):
        if found and found[-1]["at_ms"] == at:
            found.pop()
        found.append({"at_ms": at, "kind": kind, "partitions": high})
        if rest < high:
            found.append({"at_ms": at + span.width_ms, "kind": kind, "partitions": rest})
    return found


def longest_intervals(tables: WrittenTables) -> Rows:
    """The topics whose partitions were unhealthy for the longest total time."""
    columns = ("kind", "name", "partitions", "intervals", "duration_ms", "longest_ms")
    order = [("duration_ms", _DOWN), ("name", _UP), ("kind", _UP)]
    return tables.top("interval_totals", columns, order, MOST_ROWS, ds.field("scope") == "topic")


def offline_intervals(tables: WrittenTables, span: Span) -> Rows:
    """The longest periods without a leader; what has not ended lasts up to the last record."""
    columns = ("topic_name", "partition_id", "start_timestamp_ms", "end_timestamp_ms", "brokers")
    order = [("lasted_ms", _DOWN), *_OF_PARTITION]
    found: pa.Table | None = None
    for batch in tables.batches("partition_intervals", columns, ds.field("kind") == "offline"):
        ends = pc.coalesce(batch["end_timestamp_ms"], span.last_ms)
        lasted = pc.subtract(ends, batch["start_timestamp_ms"])
        rows = pa.Table.from_batches([batch]).append_column("lasted_ms", lasted)
        found = first(rows if found is None else pa.concat_tables([found, rows]), order, MOST_ROWS)
    return [] if found is None else found.to_pylist()


def worst_partitions(tables: WrittenTables, span: Span) -> Rows:
    """The partitions that were unhealthy for the longest time; first those that were offline."""
    keys = {name: ds.field(name) for name in ("topic_id", "topic_name", "partition_id")}
    lasted = {kind: pc.if_else(ds.field("kind") == kind, span.lasted(), 0) for kind in _KINDS}
    found = tables.grouped("partition_intervals", keys, [(kind, "sum") for kind in _KINDS], more=lasted)
    found = found.rename_columns([*keys, *_KINDS])
    order = [*((kind, _DOWN) for kind in _KINDS), *_OF_PARTITION]
    rows: Rows = first(found, order, MOST_WORST).to_pylist()
    counted = ("changes", "isr_shrinks", "isr_expands", "leader_moves")
    columns = ("topic_id", "partition_id", *counted)
    among = ds.field("topic_id").isin(pa.array([row["topic_id"] for row in rows], pa.string()))
    churn = {
        (row["topic_id"], row["partition_id"]): row
        for batch in tables.batches("isr_churn", columns, among)
        for row in batch.to_pylist()
    }
    for row in rows:
        own = churn.get((row["topic_id"], row["partition_id"]), {})
        row |= {name: own.get(name, 0) for name in counted}
    return rows


def top_churners(tables: WrittenTables) -> Rows:
    """The partitions that changed most."""
    columns = ("topic_name", "partition_id", "changes", "isr_shrinks", "isr_expands", "leader_moves")
    return tables.top("isr_churn", columns, [("changes", _DOWN), *_OF_PARTITION], MOST_WORST)


def churn_by_day(tables: WrittenTables) -> Rows:
    """How often partitions changed on each day in UTC, the newest first."""
    found: dict[int, Counter[str]] = {}
    columns = ("timestamp_ms", "old_isr", "new_isr", "old_leader", "new_leader")
    for batch in tables.batches("partition_changes", columns):
        days = pc.multiply(pc.divide(batch["timestamp_ms"], DAY_MS), DAY_MS)
        moved = pc.fill_null(pc.not_equal(batch["old_leader"], batch["new_leader"]), False)
        flags = {
            "changes": np.ones(len(batch), bool),
            "isr_shrinks": _lose(batch["old_isr"], batch["new_isr"]),
            "isr_expands": _lose(batch["new_isr"], batch["old_isr"]),
            "leader_moves": moved.to_numpy(zero_copy_only=False),
        }
        for day in pc.unique(days).to_pylist():
            of_day = pc.equal(days, day).to_numpy(zero_copy_only=False)
            counts = found.setdefault(day, Counter())
            for name, holds in flags.items():
                counts[name] += int(np.count_nonzero(holds & of_day))
    newest = sorted(found, reverse=True)[:MOST_DAYS]
    names = ("changes", "isr_shrinks", "isr_expands", "leader_moves")
    return [{"day_ms": day} | {name: found[day][name] for name in names} for day in newest]


def _lose(before: pa.Array, after: pa.Array) -> Any:
    """Whether each list of the first array has members that the list of the second lacks."""
    keys = [
        (pc.list_parent_indices(each).to_numpy() << 32) | pc.list_flatten(each).to_numpy()
        for each in (before, after)
    ]
    lost: Any = np.zeros(len(before), bool)
    lost[keys[0][~np.isin(keys[0], keys[1])] >> 32] = True
    return lost


def brokers_now(tables: WrittenTables) -> Rows:
    """Each broker that was ever registered: its state, what it leads and holds, and its registrations.

    skew is how many times its even share a registered broker leads.
    """
    counts: dict[str, Counter[int]] = {name: Counter() for name in ("leads", "preferred", "replicas")}
    for batch in tables.batches("partitions", ["leader", "replicas"]):
        _count(counts["leads"], batch["leader"])
        _count(counts["preferred"], pc.list_flatten(pc.list_slice(batch["replicas"], 0, 1)))
        _count(counts["replicas"], pc.list_flatten(batch["replicas"]))
    now = {row["broker_id"]: row for row in _all(tables, "brokers", _BROKER)}
    rows: Rows = []
    for broker_id, sessions in _sessions(tables).items():
        row = {
            "broker_id": broker_id,
            "rack": sessions[-1]["rack"] or "",
            "sessions": len(sessions),
            "fencings": sum(session["fenced_count"] for session in sessions),
            "registered_ms": max(
                (at for session in sessions if (at := session["registered_timestamp_ms"]) is not None),
                default=None,
            ),
        }
        row |= {name: now.get(broker_id, {}).get(name) for name in _BROKER}
        row |= {"broker_id": broker_id} | {name: count[broker_id] for name, count in counts.items()}
        rows.append(row)
    rows = sorted(rows, key=lambda row: (-row["leads"], row["broker_id"]))[:MOST_BROKERS]
    registered = [row for row in rows if row["fenced"] is not None]
    led = sum(row["leads"] for row in registered)
    for row in rows:
        is_even = row["fenced"] is not None and led
        row["skew"] = row["leads"] * len(registered) / led if is_even else None
    return rows


_BROKER = ("broker_id", "fenced", "in_controlled_shutdown")
_SESSION = ("broker_id", "rack", "fenced_count", "registered_offset", "registered_timestamp_ms")


def _sessions(tables: WrittenTables) -> dict[int, Rows]:
    """The sessions of each broker, the newest last."""
    found: dict[int, Rows] = {}
    rows = _all(tables, "broker_sessions", _SESSION)
    for row in sorted(rows, key=lambda row: _offset(row["registered_offset"])):
        found.setdefault(row["broker_id"], []).append(row)
    return found


def _offset(offset: int | None) -> int:
    return -1 if offset is None else offset


def _all(tables: WrittenTables, name: str, columns: Iterable[str]) -> Rows:
    return [row for batch in tables.batches(name, list(columns)) for row in batch.to_pylist()]


def rack_totals(broker_rows: Rows) -> Rows:
    """What the brokers of each rack lead and hold."""
    found: dict[str, dict[str, Any]] = {}
    for row in broker_rows:
        if row["fenced"] is not None:
            rack = found.setdefault(
                row["rack"], {"rack": row["rack"], "brokers": 0, "leads": 0, "replicas": 0}
            )
            rack["brokers"] += 1
            rack["leads"] += row["leads"]
            rack["replicas"] += row["replicas"]
    return sorted(found.values(), key=lambda rack: str(rack["rack"]))


def rack_violations(tables: WrittenTables, rack_count: int) -> Rows:
    """The topics with partitions whose replicas lie in fewer racks than they could."""
    rack_of = {broker_id: sessions[-1]["rack"] for broker_id, sessions in _sessions(tables).items()}
    found: Counter[str] = Counter()
    for batch in tables.batches("partitions", ["topic_name", "replicas"]):
        for topic, replicas in zip(
            batch["topic_name"].to_pylist(), batch["replicas"].to_pylist(), strict=True
        ):
            used = {rack for broker_id in replicas if (rack := rack_of.get(broker_id))}
            found[topic] += len(used) < min(len(replicas), rack_count)
    rows = sorted((-count, topic) for topic, count in found.items() if count)[:MOST_ROWS]
    return [{"topic_name": topic, "partitions": -count} for count, topic in rows]


def last_operations(tables: WrittenTables) -> Rows:
    """The last admin operations, the newest first."""
    columns = ("offset", "timestamp_ms", "action", "resource", "detail")
    return tables.top("audit", columns, [("offset", _DOWN)], MAX_OPERATIONS)


def elections(tables: WrittenTables) -> Rows:
    """The last leaders of the quorum, the newest first."""
    columns = ("offset", "timestamp_ms", "epoch", "leader_id", "voters")
    return tables.top("elections", columns, [("offset", _DOWN)], MOST_ROWS)
