"""`brokers`, `broker_history` and `broker_sessions`."""

from __future__ import annotations

from kraftd.spark.replay.source import Replay, and_next, by_key, current, in_log, validity, with_next
from kraftd.spark.tables.brokers import COLUMNS, REGISTERED, TYPES, UNREGISTERED, WHOLE
from kraftd.spark.tables.columns import Row, Rows


def broker_events(replay: Replay, *, whole: bool) -> Rows:
    """The records of brokers; became_fenced and became_shutting_down are what each sets, null for nothing."""
    if whole:
        return replay.shared("broker_events", lambda replay: _events(replay.history(COLUMNS, TYPES)))
    return _events(replay.state(COLUMNS, TYPES, dated_by=["type", "broker_id"]))


def _events(rows: Rows) -> Rows:
    for row in rows:
        fenced = shutting_down = None
        if row["type"] == REGISTERED:
            fenced, shutting_down = row["fenced"], bool(row["in_controlled_shutdown"])
        elif row["type"] == "FenceBrokerRecord" or row["fenced_change"] == 1:
            fenced = True
        elif row["type"] == "UnfenceBrokerRecord" or row["fenced_change"] == -1:
            fenced = False
        if row["type"] != REGISTERED and row["in_controlled_shutdown_change"] == 1:
            shutting_down = True
        row |= {"became_fenced": fenced, "became_shutting_down": shutting_down}
    return rows


def brokers(replay: Replay) -> Rows:
    return current(_registrations(replay, whole=False))


def broker_history(replay: Replay) -> Rows:
    return _registrations(replay, whole=True)


def _registrations(replay: Replay, *, whole: bool) -> Rows:
    """Every registered broker after each of its records."""
    found = []
    states: dict[int, Row] = {}
    for row in with_next(broker_events(replay, whole=whole), "broker_id"):
        state = dict(states.get(row["broker_id"]) or dict.fromkeys((*WHOLE, *_KEPT)))
        states[row["broker_id"]] = state
        if row["type"] == REGISTERED:
            state |= {name: row[name] for name in WHOLE}
            state |= {"log_dirs": row["log_dirs"] or [], "registered_offset": in_log(row)}
            state["cordoned_log_dirs"] = row["cordoned_log_dirs"]
        else:
            state["log_dirs"] = row["log_dirs"] or state["log_dirs"]
            if row["cordoned_log_dirs"] is not None:
                state["cordoned_log_dirs"] = row["cordoned_log_dirs"]
        for name, became in _BECAME.items():
            if row[became] is not None:
                state[name] = row[became]
        if row["type"] != UNREGISTERED:
            migrating = {"is_migrating_zk_broker": bool(state["is_migrating_zk_broker"])}
            found.append(state | migrating | {"broker_id": row["broker_id"]} | validity(row))
    return found


_BECAME = {"fenced": "became_fenced", "in_controlled_shutdown": "became_shutting_down"}
_KEPT = (*_BECAME, "log_dirs", "cordoned_log_dirs", "registered_offset")


def racks(replay: Replay) -> dict[int, str]:
    """The rack of every broker in the history, of its last registration; empty without one."""
    rows = broker_events(replay, whole=True)
    return {row["broker_id"]: row["rack"] or "" for row in rows if row["type"] == REGISTERED}


def broker_sessions(replay: Replay) -> Rows:
    rows = broker_events(replay, whole=True)
    events = by_key(rows, "broker_id", "broker_epoch")
    edges = [dict(row) for row in rows if row["type"] in (REGISTERED, UNREGISTERED)]
    found = []
    for group in by_key(edges, "broker_id").values():
        for row, end in and_next(group):
            if row["type"] != REGISTERED:
                continue
            names = ("broker_id", "broker_epoch", "incarnation_id", "rack")
            session = {name: row[name] for name in names}
            session |= {
                "registered_offset": in_log(row),
                "registered_timestamp_ms": in_log(row, "timestamp_ms"),
                "ended_offset": None if end is None else end["offset"],
                "ended_timestamp_ms": None if end is None else end["timestamp_ms"],
                "ended_by": None if end is None else _ENDS[end["type"]],
            }
            found.append(session | _within_session(events[row["broker_id"], row["broker_epoch"]]))
    return found


_ENDS = {REGISTERED: "registered again", UNREGISTERED: "unregistered"}


def _within_session(rows: Rows) -> Row:
    """When a broker of one epoch was unfenced, fenced and shut down."""
    unfenced = [row for row in rows if row["became_fenced"] is False and row["offset"] >= 0]
    later = [row for row in rows if row["type"] != REGISTERED]
    fenced = [row for row in later if row["became_fenced"]]
    stopping = [row["timestamp_ms"] for row in later if row["became_shutting_down"]]

    return {
        "unfenced_offset": min((row["offset"] for row in unfenced), default=None),
        "unfenced_timestamp_ms": min((row["timestamp_ms"] for row in unfenced), default=None),
        "fenced_offset": max((row["offset"] for row in fenced), default=None),
        "fenced_timestamp_ms": max((row["timestamp_ms"] for row in fenced), default=None),
        "fenced_count": len(fenced),
        "controlled_shutdown_timestamp_ms": max(stopping, default=None),
    }
