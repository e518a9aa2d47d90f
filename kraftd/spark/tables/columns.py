"""The columns of every table, in order, without the TIMESTAMP that follows each time in milliseconds.

A column has the type of the record's field of that name, unless `_TYPES` or its ending
says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftd.spark.decoding.fields import MAX_TIMESTAMP_MS, record_schema

Row = dict[str, Any]
Rows = list[Row]

DURATIONS = frozenset(("duration_ms", "longest_ms", "transaction_timeout_ms"))
"""Columns in milliseconds that are no time."""

_VALIDITY = "valid_from_offset valid_from_ms valid_to_offset valid_to_ms"
_PARTITION = "topic_id topic_name partition_id"
_STATE = (
    f"{_PARTITION} leader isr replicas removing_replicas adding_replicas leader_recovery_state leader_epoch "
    "partition_epoch directories eligible_leader_replicas last_known_elr"
)
_BROKER = (
    "broker_id broker_epoch incarnation_id rack fenced in_controlled_shutdown end_points features log_dirs "
    "cordoned_log_dirs is_migrating_zk_broker registered_offset"
)
_CONFIG = "resource_type resource_type_name resource_name name value"
_ACL = (
    "id resource_type resource_name pattern_type principal host operation permission_type resource_type_name "
    "pattern_type_name operation_name permission_type_name"
)
_COMMIT = "committed_offset committed_leader_epoch metadata commit_timestamp_ms expire_timestamp_ms"
_PLACE = "coordinator_partition offset timestamp_ms"
_GROUP = f"group_type generation protocol_type protocol leader_id member_count members {_PLACE}"
_PRODUCER = "transactional_id producer_id producer_epoch"
_INTERVAL = "start_offset start_timestamp_ms end_offset end_timestamp_ms duration_ms"
COLUMNS = {
    "topic_history": f"topic_id name {_VALIDITY}",
    "topics": "name topic_id partition_count created_offset created_timestamp_ms",
    "partition_history": f"{_STATE} {_VALIDITY}",
    "partitions": f"{_STATE} changed_offset",
    "partition_changes": (
        f"offset epoch timestamp_ms batch_offset {_PARTITION} old_leader new_leader old_isr new_isr "
        "old_replicas new_replicas adding_replicas removing_replicas leader_recovery_state leader_epoch "
        "partition_epoch old_leader_recovery_state old_eligible_leader_replicas eligible_leader_replicas"
    ),
    "isr_history": f"{_PARTITION} broker_id {_VALIDITY} duration_ms",
    "reassignments": (
        f"{_PARTITION} old_replicas target_replicas adding_replicas removing_replicas outcome {_VALIDITY} "
        "duration_ms"
    ),
    "broker_history": f"{_BROKER} {_VALIDITY}",
    "brokers": _BROKER,
    "broker_sessions": (
        "broker_id broker_epoch incarnation_id rack registered_offset registered_timestamp_ms ended_offset "
        "ended_timestamp_ms ended_by unfenced_offset unfenced_timestamp_ms fenced_offset fenced_timestamp_ms "
        "fenced_count controlled_shutdown_timestamp_ms"
    ),
    "config_history": f"{_CONFIG} {_VALIDITY}",
    "configs": f"{_CONFIG} changed_offset",
    "acl_history": f"{_ACL} {_VALIDITY}",
    "acls": f"{_ACL} created_offset",
    "quota_history": f"entity key value {_VALIDITY}",
    "quotas": "entity key value changed_offset",
    "features": "name feature_level changed_offset",
    "scram_users": "name mechanism mechanism_name iterations changed_offset",
    "producer_ids": "offset timestamp_ms broker_id broker_epoch first_producer_id next_producer_id",
    "elections": "offset epoch timestamp_ms leader_id voters granting_voters",
    "partition_intervals": f"kind {_PARTITION} {_INTERVAL} brokers spans",
    "interval_totals": "kind scope name intervals partitions duration_ms longest_ms",
    "leader_moves": (
        f"offset timestamp_ms {_PARTITION} old_leader new_leader cause leader_epoch new_isr new_replicas"
    ),
    "isr_churn": (
        f"{_PARTITION} changes isr_shrinks isr_expands leader_moves first_timestamp_ms last_timestamp_ms"
    ),
    "audit": "offset epoch timestamp_ms action resource detail kind name key old_value new_value",
    "snapshots": (
        "path node_id end_offset epoch size_bytes last_contained_log_timestamp_ms kraft_version voters"
    ),
    "offset_commits": (
        f"group_id topic_name partition_id {_COMMIT} outcome ended_ms producer_id producer_epoch "
        f"log_end_offset lag lag_before {_PLACE}"
    ),
    "committed_offsets": f"group_id topic_name partition_id {_COMMIT} log_end_offset lag {_PLACE}",
    "rebalances": f"group_id {_GROUP} old_generation joined left",
    "groups": f"group_id {_GROUP}",
    "transactions": (
        f"{_PRODUCER} outcome start_timestamp_ms decided_ms completed_ms duration_ms partitions "
        "transaction_timeout_ms client_transaction_version coordinator_partition first_offset last_offset"
    ),
    "transactional_ids": (
        f"{_PRODUCER} state start_timestamp_ms last_update_timestamp_ms partitions transaction_timeout_ms "
        f"client_transaction_version {_PLACE}"
    ),
}
_INTS = pa.list_(pa.int32())
_LONGS = (
    "leader_epoch partition_epoch fenced_count intervals partitions changes isr_shrinks isr_expands "
    "leader_moves first_producer_id size_bytes"
)
_MEMBER = ("member_id", "group_instance_id", "client_id", "client_host")
_OF_COORDINATORS = (
    ("group_id group_type protocol_type protocol metadata outcome transactional_id state", pa.string()),
    ("generation old_generation member_count coordinator_partition committed_leader_epoch", pa.int32()),
    ("transaction_timeout_ms client_transaction_version producer_epoch", pa.int32()),
    ("producer_id lag lag_before", pa.int64()),
    ("joined left", pa.list_(pa.string())),
    ("partitions", pa.list_(pa.struct([("topic_name", pa.string()), ("partition_id", pa.int32())]))),
    ("members", pa.list_(pa.struct([(name, pa.string()) for name in _MEMBER]))),
)
"""Types by name, in the tables of coordinators."""
COORDINATOR_TABLES = (
    "offset_commits",
    "committed_offsets",
    "rebalances",
    "groups",
    "transactions",
    "transactional_ids",
)
_TEXTS = (
    "topic_name outcome ended_by kind scope cause action resource detail old_value new_value path "
    "resource_type_name pattern_type_name operation_name permission_type_name mechanism_name"
)
_TYPES = (
    dict.fromkeys(_LONGS.split(), pa.int64())
    | dict.fromkeys(_TEXTS.split(), pa.string())
    | dict.fromkeys(("node_id", "partition_count"), pa.int32())
    | dict.fromkeys(("brokers", "voters", "granting_voters", "target_replicas"), _INTS)
    | {
        "entity": pa.list_(pa.struct([("entity_type", pa.string()), ("entity_name", pa.string())])),
        ("quotas", "value"): pa.float64(),
        ("quota_history", "value"): pa.float64(),
    }
    | {
        (table, name): kind
        for table in COORDINATOR_TABLES
        for names, kind in _OF_COORDINATORS
        for name in names.split()
    }
    | {("rebalances", "leader_id"): pa.string(), ("groups", "leader_id"): pa.string()}
)


def is_time(name: str) -> bool:
    """Return whether a column is a time in milliseconds."""
    return name.endswith("_ms") and name not in DURATIONS


@cache
def schema_of(table: str) -> pa.Schema:
    """The schema of a table as it is written."""
    return pa.schema(_fields(table, COLUMNS[table].split()))


def _fields(table: str, names: Iterable[str]) -> list[pa.Field]:
    found = []
    for name in names:
        found.append(pa.field(name, _type_of(table, name)))
        if is_time(name):
            found.append(pa.field(name.removesuffix("_ms"), pa.timestamp("us", "UTC")))
    return found


def _type_of(table: str, name: str) -> pa.DataType:
    if name == "spans":
        return pa.list_(pa.struct(_fields(table, ("broker_id", *_INTERVAL.split()))))
    kind = _TYPES.get((table, name), _TYPES.get(name))
    if kind is None and name.endswith(("_offset", "_ms")):
        return pa.int64()
    plain = name.removeprefix("old_").removeprefix("new_")
    return record_schema().field(plain).type if kind is None else kind


def as_table(name: str, rows: Rows) -> pa.Table:
    """The rows of a table, with a TIMESTAMP after each time; other columns of theirs are left out."""
    if name == "partition_intervals":
        for span in (span for row in rows for span in row["spans"]):
            _add_timestamps(span, [column for column in span if is_time(column)])
    arrays = []
    for column in COLUMNS[name].split():
        arrays.append(pa.array([row[column] for row in rows], _type_of(name, column)))
        if is_time(column):
            arrays.append(_timestamps(arrays[-1]))
    return pa.Table.from_arrays(arrays, schema=schema_of(name))


def _timestamps(times_ms: pa.Array) -> pa.Array:
    is_known = pc.and_(pc.greater_equal(times_ms, 0), pc.less_equal(times_ms, MAX_TIMESTAMP_MS))
    known = pc.if_else(is_known, times_ms, None)
    return pc.multiply(known, 1000).cast(pa.timestamp("us", "UTC"))


def _add_timestamps(row: Row, times: Iterable[str]) -> None:
    for name in times:
        ms = row[name]
        known = ms is not None and 0 <= ms <= MAX_TIMESTAMP_MS
        row[name.removesuffix("_ms")] = ms * 1000 if known else None
