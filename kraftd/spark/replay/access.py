"""`acls`, `quotas`, their histories, `scram_users`, `features`, `producer_ids`; `elections` of the quorum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraftd.history.names import (
    ACL_RESOURCE_TYPES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    SCRAM_MECHANISMS,
)
from kraftd.spark.replay.source import Replay, current, in_log, latest, validity, with_next
from kraftd.spark.tables.access import ACL, ACL_FIELDS, REMOVED_ACL
from kraftd.spark.tables.columns import Row, Rows


def name_of(number: int | None, names: Mapping[int, str] | Sequence[str]) -> str | None:
    """The name of a number; the number itself if it has none."""
    if number is None:
        return None
    known = names if isinstance(names, Mapping) else dict(enumerate(names))
    return known.get(number, str(number))


def acl_names(row: Row) -> Row:
    """The names of an ACL's numbers."""
    return {
        "resource_type_name": name_of(row["resource_type"], ACL_RESOURCE_TYPES),
        "pattern_type_name": name_of(row["pattern_type"], PATTERN_TYPES),
        "operation_name": name_of(row["operation"], OPERATIONS),
        "permission_type_name": name_of(row["permission_type"], PERMISSIONS),
    }


def acls(replay: Replay) -> Rows:
    rows = _acl_history(replay, whole=replay.extent.replays_history)
    return [row | {"created_offset": row["valid_from_offset"]} for row in current(rows)]


def acl_history(replay: Replay) -> Rows:
    return _acl_history(replay, whole=True)


def _acl_history(replay: Replay, *, whole: bool) -> Rows:
    read = replay.history if whole else replay.state
    rows = with_next(read(["id", *ACL_FIELDS], [ACL, REMOVED_ACL], dated_by=["id"]), "id")
    return [
        {name: row[name] for name in ("id", *ACL_FIELDS)} | acl_names(row) | validity(row)
        for row in rows
        if row["type"] == ACL
    ]


def quotas(replay: Replay) -> Rows:
    rows = _quota_history(replay, whole=replay.extent.replays_history)
    return [row | {"changed_offset": row["valid_from_offset"]} for row in current(rows)]


def quota_history(replay: Replay) -> Rows:
    return _quota_history(replay, whole=True)


def _quota_history(replay: Replay, *, whole: bool) -> Rows:
    read = replay.history if whole else replay.state
    rows = read(["entity", "key", "quota_value", "remove"], ["ClientQuotaRecord"], dated_by=["entity", "key"])
    for row in rows:
        parts = [(part["entity_type"], part["entity_name"]) for part in row["entity"]]
        parts.sort(key=lambda part: (part[0], part[1] is not None, part[1]))
        row["entity"] = [{"entity_type": kind, "entity_name": name} for kind, name in parts]
    return [
        {"entity": row["entity"], "key": row["key"], "value": row["quota_value"]} | validity(row)
        for row in with_next(rows, "entity", "key")
        if not row["remove"]
    ]


def scram_users(replay: Replay) -> Rows:
    kinds = ["UserScramCredentialRecord", "RemoveUserScramCredentialRecord"]
    keys = ["name", "mechanism"]
    return [
        row
        | {
            "mechanism_name": name_of(row["mechanism"], SCRAM_MECHANISMS),
            "changed_offset": in_log(row),
        }
        for row in latest(replay.state([*keys, "iterations"], kinds, dated_by=keys), *keys)
        if row["type"] == kinds[0]
    ]


def features(replay: Replay) -> Rows:
    columns = ["name", "feature_level", "kraft_version"]
    kinds = ["FeatureLevelRecord", "KRaftVersionRecord"]
    rows = []
    for row in replay.state(columns, kinds, dated_by=["type", "name"]):
        if row["type"] == "KRaftVersionRecord":
            row |= {"name": "kraft.version", "feature_level": row["kraft_version"]}
        elif row["name"] == "kraft.version":
            continue
        rows.append(row | {"changed_offset": in_log(row)})
    return [row for row in latest(rows, "name") if row["feature_level"] > 0]


def producer_ids(replay: Replay) -> Rows:
    rows = replay.history(["broker_id", "broker_epoch", "next_producer_id"], ["ProducerIdsRecord"])
    last = None
    for row in rows:
        row["first_producer_id"], last = last, row["next_producer_id"]
    return [row | {"offset": in_log(row), "timestamp_ms": in_log(row, "timestamp_ms")} for row in rows]


def elections(replay: Replay) -> Rows:
    columns = ["offset", "epoch", "timestamp_ms", "leader_id", "voters", "granting_voters"]
    rows = replay.log(columns, ["LeaderChangeMessage"])
    for row in rows:
        for name in ("voters", "granting_voters"):
            row[name] = None if row[name] is None else [voter["voter_id"] for voter in row[name]]
    return rows
