"""`audit`."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from kraftd.history.names import ACL_RESOURCE_TYPES, SCRAM_MECHANISMS, resource_type
from kraftd.spark.replay.access import acl_names, name_of
from kraftd.spark.replay.partitions import partition_replay
from kraftd.spark.replay.reassignments import reassignment_steps
from kraftd.spark.replay.source import Replay, in_order
from kraftd.spark.tables.access import ACL, ACL_FIELDS, REMOVED_ACL
from kraftd.spark.tables.audit import COLUMNS, TYPES
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.reassignments import CANCELLED

_SCRAM = ("UserScramCredentialRecord", "RemoveUserScramCredentialRecord")
_TOKEN = ("DelegationTokenRecord", "RemoveDelegationTokenRecord")


def audit(replay: Replay) -> Rows:
    return in_order([*of_things(replay), *of_partitions(replay)])


def of_partitions(replay: Replay) -> Rows:
    """Operations on partitions, in no order."""
    return [*_added_partitions(replay), *_of_replicas(replay)]


def of_things(replay: Replay) -> Rows:
    """Operations on all but partitions, with the value that the record before set."""
    found = []
    last: dict[tuple[Any, ...], tuple[Row, Row]] = {}
    removed: dict[str | None, int] = {}
    for row in replay.history(COLUMNS, TYPES):
        subject = _subject(row)
        before, operation_before = last.get(subject, (None, None))
        if before is not None and row["type"] in ("RemoveTopicRecord", REMOVED_ACL):
            # A removal names only an id: the rest is in the record before.
            row |= {name: before[name] for name in ("name", *ACL_FIELDS)}
        operation = _operation_of(row)
        old_value = None if operation_before is None else operation_before["new_value"]
        if row["type"] == "RemoveTopicRecord":
            removed[operation["name"]] = row["offset"]
        elif before is not None and row["type"] == "ConfigRecord" and operation["kind"] == "TOPIC":
            is_gone = before["offset"] < removed.get(operation["name"], -1)
            old_value = None if is_gone else old_value  # the topic took its configs with it
        last[subject] = row, operation
        if row["offset"] >= 0:
            place = {name: row[name] for name in ("offset", "epoch", "timestamp_ms")}
            found.append(place | operation | {"old_value": old_value})
    return found


def _subject(row: Row) -> tuple[Any, ...]:
    """What a record is about: one thing's records are compared with each other."""
    kind = row["type"]
    if kind in ("TopicRecord", "RemoveTopicRecord"):
        return "topic", row["topic_id"]
    if kind == "ConfigRecord":
        return "config", row["resource_type"], row["resource_name"], row["name"]
    if kind in (ACL, REMOVED_ACL):
        return "acl", row["id"]
    if kind == "ClientQuotaRecord":
        return "quota", _entity(row), row["key"]
    if kind in _SCRAM:
        return "scram", row["name"], row["mechanism"]
    if kind == "FeatureLevelRecord":
        return "feature", row["name"]
    return ("token", row["token_id"]) if kind in _TOKEN else ("broker", row["broker_id"])


def _operation_of(row: Row) -> Row:
    kind = row["type"]
    if kind in ("TopicRecord", "RemoveTopicRecord"):
        name = row["topic_id"] if row["name"] is None else row["name"]
        action = "create topic" if kind == "TopicRecord" else "delete topic"
        new_value = row["topic_id"] if kind == "TopicRecord" else None
        return _operation(action, f"TOPIC {name}", None, "TOPIC", name, None, new_value)
    if kind == "ConfigRecord":
        return _config(row)
    if kind in (ACL, REMOVED_ACL):
        return _acl(row, is_new=kind == ACL)
    if kind == "ClientQuotaRecord":
        value = None if row["remove"] else double_text(row["quota_value"])
        action = "delete quota" if row["remove"] else "set quota"
        detail = row["key"] if row["remove"] else _text(row["key"], "=", value)
        entity = _entity(row)
        return _operation(action, entity, detail, "QUOTA", entity, row["key"], value)
    if kind in _SCRAM:
        mechanism = name_of(row["mechanism"], SCRAM_MECHANISMS)
        is_set = kind == _SCRAM[0]
        action = "set SCRAM credential" if is_set else "delete SCRAM credential"
        value = _text(row["iterations"], " iterations") if is_set else None
        resource = _text("USER ", row["name"])
        return _operation(action, resource, mechanism, "USER", row["name"], mechanism, value)
    if kind == "FeatureLevelRecord":
        level, name = row["feature_level"], row["name"]
        value = str(level) if level else None
        return _operation("set feature", name, _text("level ", level), "FEATURE", name, None, value)
    if kind in _TOKEN:
        owner = _text("owner ", row["owner"]) if kind == _TOKEN[0] else None
        action = "set delegation token" if kind == _TOKEN[0] else "delete delegation token"
        token = row["token_id"]
        return _operation(action, token, owner, "DELEGATION_TOKEN", token, None, owner)
    broker = str(row["broker_id"])
    return _operation("unregister broker", f"BROKER {broker}", None, "BROKER", broker, None, None)


def _operation(
    action: str,
    resource: str | None,
    detail: str | None,
    kind: str | None,
    name: str | None,
    key: str | None,
    new_value: str | None,
) -> Row:
    return {
        "action": action,
        "resource": resource,
        "detail": detail,
        "kind": kind,
        "name": name,
        "key": key,
        "new_value": new_value,
    }


def _config(row: Row) -> Row:
    kind, resource = resource_type(row["resource_type"]), row["resource_name"]
    name, value = row["name"], row["value"]
    action = "delete config" if value is None else "set config"
    detail = name if value is None else f"{name}={value}"
    return _operation(action, f"{kind} {resource or '<default>'}", detail, kind, resource, name, value)


def _acl(row: Row, *, is_new: bool) -> Row:
    names = acl_names(row)
    kind, resource = name_of(row["resource_type"], ACL_RESOURCE_TYPES), row["resource_name"]
    text = _text(
        names["permission_type_name"],
        " ",
        row["principal"],
        " ",
        names["operation_name"],
        " from ",
        row["host"],
    )
    about = _text(kind, " ", resource)
    if is_new:
        value = _text(text, ", ", names["pattern_type_name"])
        return _operation("create ACL", about, text, kind, resource, row["id"], value)
    return _operation("delete ACL", about or row["id"], text, kind, resource, row["id"], None)


def _entity(row: Row) -> str:
    parts = [
        f"{part['entity_type']} {'<default>' if part['entity_name'] is None else part['entity_name']}"
        for part in row["entity"]
    ]
    return ", ".join(sorted(parts))


def _text(*parts: Any) -> str | None:
    """The parts as one text, null if one of them is null."""
    return None if None in parts else "".join(map(str, parts))


def double_text(value: float | None) -> str | None:
    """A number as Java and Spark write it."""
    if value is None or not math.isfinite(value):
        return None if value is None else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    is_negative, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    return f"{'-' * is_negative}{text[0]}.{text[1:] or '0'}E{len(text) - 1 + exponent}"


def _added_partitions(replay: Replay) -> Rows:
    """Partitions that were added to a topic; those that are created with it are no operation."""
    return [
        _of_partition(row, "add partition", f" on {_ids(row['replicas'])}", None, row["replicas"])
        for row in partition_replay(replay, whole=True)
        if row["type"] == "PartitionRecord"
        and row["offset"] >= 0
        and (row["created_offset"] is None or _is_later(row))
    ]


def _is_later(row: Row) -> bool:
    """Return whether a partition came in a batch after its topic."""
    return row["batch_offset"] is not None and row["batch_offset"] > row["created_offset"]


def _of_replicas(replay: Replay) -> Rows:
    """Reassignments that were started, and those that were cancelled."""
    found = []
    for row in reassignment_steps(replay):
        old, new = row["old_replicas"], row["target_replicas"]
        if row["starts"] and row["offset"] >= 0:
            adding, removing = _ids(row["adding_replicas"]) or "-", _ids(row["removing_replicas"]) or "-"
            detail = f" adding {adding} removing {removing}"
            found.append(_of_partition(row, "reassign partition", detail, old, new))
        if row["starts"] and row["outcome"] == CANCELLED:
            end = {"offset": row["next_offset"], "timestamp_ms": row["next_ms"], "epoch": row["end_epoch"]}
            found.append(_of_partition(row | end, "cancel reassignment", "", new, old))
    return found


def _of_partition(row: Row, action: str, detail: str, old: list[int] | None, new: list[int] | None) -> Row:
    name = row["topic_id"] if row["topic_name"] is None else row["topic_name"]
    index = str(row["partition_id"])
    place = {column: row[column] for column in ("offset", "epoch", "timestamp_ms")}
    operation = _operation(
        action, f"TOPIC {name}", f"partition {index}{detail}", "TOPIC", name, index, _ids(new)
    )
    return place | operation | {"old_value": _ids(old)}


def _ids(numbers: list[int] | None) -> str | None:
    return None if numbers is None else ",".join(map(str, numbers))
