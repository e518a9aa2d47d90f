"""`leader_moves` and `isr_churn`."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.history.causes import FIRST, LAST, MAX_PAUSE_MS, MAX_UNDIVIDED, Placement, explains
from kraftd.named_tuple import NamedTuple
from kraftd.spark.replay.brokers import broker_events
from kraftd.spark.replay.partitions import partition_changes
from kraftd.spark.replay.source import Replay, by_key
from kraftd.spark.tables.brokers import REGISTERED, UNREGISTERED
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.moves import CAUSES


def leader_moves(replay: Replay) -> Rows:
    offsets = [row["offset"] for row in replay.log(["offset"], ["PartitionChangeRecord"])]
    causes = Causes(
        events_beside(replay, offsets), parts_of_events(replay, sizes_of(partition_changes(replay)))
    )
    return moves_of(partition_changes(replay), causes)


class Causes(NamedTuple):
    """By offset of a change, the broker's events right before and right after its run of changes; by batch
    that is part of an event, broker_id and cause of each."""

    sides: dict[int, tuple[Row | None, Row | None]]
    parts: dict[int, Rows]


def moves_of(changes: Rows, causes: Causes) -> Rows:
    """The changes after which another broker leads, or none, with their causes."""
    rows = [row for row in changes if row["old_leader"] not in (None, row["new_leader"])]
    for row in rows:
        row["cause"] = _cause(row, causes.sides.get(row["offset"]), causes.parts)
    return rows


def _cause(row: Row, sides: tuple[Row | None, Row | None] | None, parts: dict[int, Rows]) -> str:
    old, new = row["old_leader"], row["new_leader"]
    same_replicas = _same_replicas(row)
    if _is_unclean(row, same_replicas):
        return "unclean election"
    before, after = _placements(row)
    for event in sides or ():
        if event is not None and explains(event["kind"], event["broker_id"], before, after):
            return CAUSES[event["kind"]]
    leavers = _leavers(row)
    for part in parts.get(row["batch_offset"], ()):
        if part["broker_id"] in leavers:
            return CAUSES[part["cause"]]
    if not same_replicas:
        return "reassignment"
    if new == -1:
        return "leader lost"
    is_preferred = new == row["new_replicas"][0] and old in row["new_isr"]
    return "preferred election" if is_preferred else "election"


def _placements(row: Row) -> tuple[Placement, Placement]:
    return (
        Placement(row["old_leader"], row["old_isr"] or (), row["old_replicas"] or ()),
        Placement(row["new_leader"], row["new_isr"] or (), row["new_replicas"] or ()),
    )


def _same_replicas(row: Row) -> bool:
    old, new = row["old_replicas"] or (), row["new_replicas"] or ()
    return old == new or sorted(old) == sorted(new)


def _is_unclean(row: Row, same_replicas: bool) -> bool:
    """Return whether a leader was elected that may lack records: it is in neither the ISR nor the ELR."""
    begins_recovery = row["leader_recovery_state"] == 1 and row["old_leader_recovery_state"] != 1
    candidates = [*(row["old_isr"] or ()), *(row["old_eligible_leader_replicas"] or ())]
    is_outsider = row["new_leader"] >= 0 and row["new_leader"] not in candidates
    return begins_recovery or (is_outsider and same_replicas)


def _leavers(row: Row) -> list[int]:
    """The brokers whose departure explains a change."""
    if not _same_replicas(row):
        return []
    found = [broker for broker in row["old_isr"] or () if broker not in (row["new_isr"] or ())]
    if (row["old_leader"] or 0) >= 0 > row["new_leader"] and row["old_leader"] not in found:
        found.append(row["old_leader"])
    return found


def _events(replay: Replay) -> Rows:
    """The offset, epoch, timestamp_ms, kind and broker_id of each event that may be a cause."""
    names = ("offset", "epoch", "timestamp_ms", "broker_id")
    return [
        {name: row[name] for name in names} | {"kind": kind}
        for row in broker_events(replay, whole=True)
        if row["offset"] >= 0 and (kind := _kind(row)) in FIRST | LAST
    ]


def _kind(row: Row) -> str | None:
    if row["type"] == UNREGISTERED:
        return "broker-unregistered"
    if row["type"] == REGISTERED:
        return "broker-registered"
    if row["became_fenced"] is not None:
        return "broker-fenced" if row["became_fenced"] else "broker-unfenced"
    if row["became_shutting_down"]:
        return "broker-shutting-down"
    return "broker-directories-changed" if row["log_dirs"] else None


def events_beside(replay: Replay, offsets: Sequence[int]) -> dict[int, tuple[Row | None, Row | None]]:
    """`Causes.sides`, of the offsets of all changes, in order."""
    events = {event["offset"]: event for event in _events(replay)}
    found: dict[int, tuple[Row | None, Row | None]] = {}
    first = 0
    for at, offset in enumerate(offsets, 1):
        if at < len(offsets) and offsets[at] == offset + 1:
            continue
        before, after = events.get(offsets[first] - 1), events.get(offset + 1)
        before = before if before is not None and before["kind"] in FIRST else None
        after = after if after is not None and after["kind"] in LAST else None
        if before is not None or after is not None:
            found |= dict.fromkeys(offsets[first:at], (before, after))
        first = at
    return found


Sizes = dict[tuple[int, int], Row]
"""By batch and broker: how many changes of the batch take a partition from the broker, and their place."""


def sizes_of(changes: Rows) -> Sizes:
    sizes: Sizes = {}
    for row in changes:
        for broker in _leavers(row):
            key = row["batch_offset"], broker
            part = sizes.setdefault(key, {name: row[name] for name in _PART} | {"size": 0, "kind": None})
            part |= {"broker_id": broker, "size": part["size"] + 1}
            part["offset"] = min(part["offset"], row["offset"])
            part["timestamp_ms"] = max(part["timestamp_ms"], row["timestamp_ms"])
    return sizes


def add_sizes(sizes: Sizes, more: Sizes) -> None:
    """Add those of other partitions."""
    for key, other in more.items():
        part = sizes.setdefault(key, other)
        if part is not other:
            part["size"] += other["size"]
            part["offset"] = min(part["offset"], other["offset"])
            part["timestamp_ms"] = max(part["timestamp_ms"], other["timestamp_ms"])


def parts_of_events(replay: Replay, sizes: Sizes) -> dict[int, Rows]:
    """`Causes.parts`, of the sizes of all changes."""
    events = [event | {"size": MAX_UNDIVIDED + 1, "batch_offset": None} for event in _events(replay)]
    rows = sorted([*sizes.values(), *events], key=lambda row: row["offset"])
    found: dict[int, Rows] = {}
    for _, group in sorted(by_key(rows, "broker_id").items()):
        for event in _joined(_large(group)):
            cause = _cause_of_parts(event)
            for part in event:
                if cause is not None and part["batch_offset"] is not None:
                    own = {"broker_id": part["broker_id"], "cause": cause}
                    found.setdefault(part["batch_offset"], []).append(own)
    return found


_PART = ("batch_offset", "offset", "timestamp_ms", "epoch")


def _is_near(row: Row, before: Row) -> bool:
    in_time = row["timestamp_ms"] - before["timestamp_ms"] <= MAX_PAUSE_MS
    return bool(before["epoch"] == row["epoch"] and in_time)


def _large(rows: Rows) -> Rows:
    """The parts of a divided event; the last one may be small."""
    found = []
    for before, row in zip([None, *rows[:-1]], rows, strict=True):
        is_last = before is not None and before["size"] > MAX_UNDIVIDED and _is_near(row, before)
        if row["size"] > MAX_UNDIVIDED or is_last:
            found.append(row)
    return found


def _joined(rows: Rows) -> list[Rows]:
    """The parts of one broker by event."""
    found: list[Rows] = []
    for row in rows:
        before = found[-1][-1] if found else None
        if before is None or not _is_near(row, before) or row["kind"] in FIRST or before["kind"] in LAST:
            found.append([])
        found[-1].append(row)
    return found


def _cause_of_parts(event: Rows) -> str | None:
    first, last = event[0]["kind"], event[-1]["kind"]
    if first == "broker-shutting-down":
        return "broker-shutting-down"
    return last if last in LAST else None


def isr_churn(replay: Replay) -> Rows:
    groups = by_key(partition_changes(replay), "topic_id", "topic_name", "partition_id")
    return [
        {
            "topic_id": topic_id,
            "topic_name": topic_name,
            "partition_id": partition_id,
            "changes": len(rows),
            "isr_shrinks": sum(not set(row["old_isr"] or ()) <= set(row["new_isr"] or ()) for row in rows),
            "isr_expands": sum(not set(row["new_isr"] or ()) <= set(row["old_isr"] or ()) for row in rows),
            "leader_moves": sum(row["old_leader"] != row["new_leader"] for row in rows),
            "first_timestamp_ms": min(row["timestamp_ms"] for row in rows),
            "last_timestamp_ms": max(row["timestamp_ms"] for row in rows),
        }
        for (topic_id, topic_name, partition_id), rows in groups.items()
    ]
