"""The rows of every table, from the state after each record: a naive second opinion on `kraftd.spark.tables`.

The states may be those of kraftd's image or of Kafka's own classes (`images.kafka_images`). What a record
touches and how long a state held is worked out here, one record at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.redaction.configs import shown
from kraftd.types import uuid_text
from kraftd.wire.message import Message
from tests.spark.images import Row, Rows, State, acl_row

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True)
class Step:
    """A record and the state after it; offset -1 is that of a checkpoint, which has no record."""

    offset: int
    epoch: int
    timestamp_ms: int
    batch_offset: int
    message: Message | None
    state: State

    @property
    def place(self) -> tuple[int | None, int | None]:
        """Offset and time, null for what a checkpoint tells."""
        return (self.offset, self.timestamp_ms) if self.offset >= 0 else (None, None)


class Truth:
    """The tables of a log."""

    def __init__(self, steps: Sequence[Step], newest_ms: int) -> None:
        self.steps = steps
        self.newest_ms = newest_ms
        self.last = steps[-1].state
        self.names: dict[str, str] = {}
        for step in steps:
            self.names |= {topic: row["name"] for topic, row in step.state["topics"].items()}

    def changed(self) -> Iterator[tuple[State, Step]]:
        """Each record with the state before it."""
        before = defaultdict[str, dict[Any, Row]](dict)
        for step in self.steps:
            if step.message is not None:
                yield before, step
            before = defaultdict(dict, step.state)

    # Periods

    def periods(self, table: str) -> list[tuple[Any, Row, Step, Step | None]]:
        """Key, row, first and end step of each state: a record that touches a key begins a new one."""
        found, current = [], {}
        for step in self.steps:
            rows = step.state[table]
            touched = touches(step, table)
            for key in [key for key in current if key in touched or current[key][0] != rows.get(key)]:
                row, first = current.pop(key)
                found.append((key, row, first, step))
            for key in rows.keys() - current.keys():
                current[key] = (rows[key], step)
        return found + [(key, row, first, None) for key, (row, first) in current.items()]

    def history(self, table: str, drop: Iterable[str] = ()) -> Rows:
        return [
            {name: value for name, value in row.items() if name not in drop} | validity(first, end)
            for _, row, first, end in self.periods(table)
        ]

    def state(self, table: str, offset_name: str) -> Rows:
        """A state table whose rows have the offset of the last record that touched them."""
        periods = self.periods(table)
        return [row | {offset_name: first.place[0]} for _, row, first, end in periods if end is None]

    def topic_history(self) -> Rows:
        lives = spans(self.steps, lambda step: dict.fromkeys(step.state["topics"], True))
        return [{"topic_id": topic, "name": self.names[topic]} | validity(*ends) for topic, _, *ends in lives]

    def topics(self) -> Rows:
        first = {row["topic_id"]: row for row in self.topic_history() if row["valid_to_offset"] is None}
        return [
            row
            | {
                "created_offset": first[topic]["valid_from_offset"],
                "created_timestamp_ms": first[topic]["valid_from_ms"],
            }
            for topic, row in self.last["topics"].items()
        ]

    def isr_history(self) -> Rows:
        def members(step: Step) -> dict[Any, bool]:
            parts = step.state["partitions"].items()
            return {(*key, broker): True for key, row in parts for broker in row["isr"]}

        return [
            {"topic_id": topic, "topic_name": self.names[topic], "partition_id": index, "broker_id": broker}
            | with_duration(validity(*ends))
            for (topic, index, broker), _, *ends in spans(self.steps, members)
        ]

    # Brokers

    def registered(self) -> dict[int, Step]:
        found: dict[int, Step] = {}
        for step in self.steps:
            if isinstance(step.message, RegisterBrokerRecord):
                found[step.message.broker_id] = step
        return found

    def broker_history(self) -> Rows:
        rows, at = [], dict.fromkeys(self.steps[0].state["brokers"])
        registered: dict[tuple[int, int], int | None] = {}
        for step in self.steps:
            if isinstance(step.message, RegisterBrokerRecord):
                at[step.message.broker_id] = step.offset
            for broker in step.state["brokers"]:
                registered[broker, step.offset] = at[broker]
        for broker, row, first, end in self.periods("brokers"):
            rows.append(row | {"registered_offset": registered[broker, first.offset]} | validity(first, end))
        return rows

    def brokers(self) -> Rows:
        return [without_validity(row) for row in self.broker_history() if row["valid_to_offset"] is None]

    def broker_sessions(self) -> Rows:
        found: Rows = []
        open_: dict[int, Row] = {}
        for step in self.steps:
            message = step.message
            begun = (
                list(step.state["brokers"])
                if message is None
                else [message.broker_id]
                if isinstance(message, RegisterBrokerRecord)
                else []
            )
            gone = [message.broker_id] if isinstance(message, UnregisterBrokerRecord) else begun
            for broker in gone:
                if broker in open_:
                    why = "unregistered" if broker not in begun else "registered again"
                    open_.pop(broker).update(ended(step), ended_by=why)
            for broker in begun:
                row = step.state["brokers"][broker]
                session = {
                    name: row[name] for name in ("broker_id", "broker_epoch", "incarnation_id", "rack")
                }
                session |= dict(
                    zip(("registered_offset", "registered_timestamp_ms"), step.place, strict=True)
                )
                session |= dict.fromkeys(("ended_offset", "ended_timestamp_ms", "ended_by"))
                session |= dict.fromkeys(("unfenced_offset", "unfenced_timestamp_ms"))
                session |= dict.fromkeys(("fenced_offset", "fenced_timestamp_ms"))
                session |= {"fenced_count": 0, "controlled_shutdown_timestamp_ms": None}
                if not row["fenced"] and step.offset >= 0:
                    session |= {"unfenced_offset": step.offset, "unfenced_timestamp_ms": step.timestamp_ms}
                open_[broker] = session
                found.append(session)
            if not begun:
                self._change_session(step, open_)
        return found

    @staticmethod
    def _change_session(step: Step, open_: dict[int, Row]) -> None:
        """A record that says fenced or unfenced counts, whether or not the broker was so already."""
        message = step.message
        fences = isinstance(message, FenceBrokerRecord) or (
            isinstance(message, BrokerRegistrationChangeRecord) and message.fenced == 1
        )
        unfences = isinstance(message, UnfenceBrokerRecord) or (
            isinstance(message, BrokerRegistrationChangeRecord) and message.fenced == -1
        )
        broker = broker_of(message)
        if broker is None or broker not in open_:
            return
        session = open_[broker]
        if fences:
            session["fenced_count"] += 1
            session |= {"fenced_offset": step.offset, "fenced_timestamp_ms": step.timestamp_ms}
        if unfences and session["unfenced_offset"] is None:
            session |= {"unfenced_offset": step.offset, "unfenced_timestamp_ms": step.timestamp_ms}
        if isinstance(message, BrokerRegistrationChangeRecord) and message.in_controlled_shutdown == 1:
            session["controlled_shutdown_timestamp_ms"] = step.timestamp_ms

    # Partitions

    def partition_changes(self) -> Rows:
        found = []
        for before, step in self.changed():
            message = step.message
            if not isinstance(message, PartitionChangeRecord):
                continue
            key = uuid_text(message.topic_id), message.partition_id
            old, new = before["partitions"][key], step.state["partitions"][key]
            row = {
                "offset": step.offset,
                "epoch": step.epoch,
                "timestamp_ms": step.timestamp_ms,
                "batch_offset": step.batch_offset,
                "topic_id": key[0],
                "topic_name": self.names[key[0]],
                "partition_id": key[1],
            }
            for name in ("leader", "isr", "replicas"):
                row |= {f"old_{name}": old[name], f"new_{name}": new[name]}
            for name in ("adding_replicas", "removing_replicas", "leader_epoch", "partition_epoch"):
                row[name] = new[name]
            for name in ("leader_recovery_state", "eligible_leader_replicas"):
                row |= {f"old_{name}": old[name], name: new[name]}
            found.append(row)
        return found

    def leader_moves(self) -> Rows:
        """Without causes."""
        names = (
            "offset", "timestamp_ms", "topic_id", "topic_name", "partition_id", "old_leader", "new_leader",
            "leader_epoch", "new_isr", "new_replicas",
        )  # fmt: skip
        moves = [row for row in self.partition_changes() if row["old_leader"] != row["new_leader"]]
        return [{name: row[name] for name in names} for row in moves]

    def isr_churn(self) -> Rows:
        groups = defaultdict(list)
        for row in self.partition_changes():
            groups[row["topic_id"], row["topic_name"], row["partition_id"]].append(row)
        return [
            {
                "topic_id": topic,
                "topic_name": name,
                "partition_id": index,
                "changes": len(rows),
                "isr_shrinks": sum(bool(set(row["old_isr"]) - set(row["new_isr"])) for row in rows),
                "isr_expands": sum(bool(set(row["new_isr"]) - set(row["old_isr"])) for row in rows),
                "leader_moves": sum(row["old_leader"] != row["new_leader"] for row in rows),
                "first_timestamp_ms": min(row["timestamp_ms"] for row in rows),
                "last_timestamp_ms": max(row["timestamp_ms"] for row in rows),
            }
            for (topic, name, index), rows in groups.items()
        ]

    def reassignments(self) -> Rows:
        return [row for row, _ in self.reassigned()]

    def reassigned(self) -> list[tuple[Row, Step | None]]:
        """Each reassignment with the step that ended it."""
        found: list[tuple[Row, Step | None]] = []
        going: dict[Any, Row] = {}
        for step in self.steps:
            parts = step.state["partitions"]
            for key in [key for key in going if key not in parts]:
                found += [(end_move(going.pop(key), step, "topic deleted"), step)]
            for key in touches(step, "partitions") or (parts if step.message is None else ()):
                if key not in parts:
                    continue
                new, old = parts[key], before_of(self.steps, step, key)
                moves = bool(new["adding_replicas"] or new["removing_replicas"])
                moved = old is not None and bool(old["adding_replicas"] or old["removing_replicas"])
                target = without(new["replicas"], new["removing_replicas"])
                another = old is None or target != without(old["replicas"], old["removing_replicas"])
                at_once = old is not None and not moves and not moved and another
                if moved and (not moves or another):
                    assert old is not None
                    move = going.pop(key)
                    same = sorted(new["replicas"]) == sorted(move["old_replicas"])
                    why = "replaced" if moves else "cancelled" if same else "completed"
                    found.append((end_move(move, step, why), step))
                if at_once or (moves and (not moved or another)):
                    origin = new if old is None else old
                    original = (
                        without(origin["replicas"], origin["adding_replicas"])
                        if old is None or moved
                        else old["replicas"]
                    )
                    move = {
                        "topic_id": key[0],
                        "topic_name": self.names[key[0]],
                        "partition_id": key[1],
                        "old_replicas": original,
                        "target_replicas": target,
                        "adding_replicas": without(target, original) if at_once else new["adding_replicas"],
                        "removing_replicas": without(original, target)
                        if at_once
                        else new["removing_replicas"],
                        "outcome": None,
                    } | with_duration(validity(step, None))
                    if at_once:
                        found.append((end_move(move, step, "completed"), step))
                    else:
                        going[key] = move
        return found + [(move, None) for move in going.values()]

    def partition_intervals(self) -> Rows:
        found = []
        for kind, holds in KINDS.items():
            of_brokers = self._spans_of_brokers(kind, holds)

            def state(step: Step, holds: Any = holds) -> dict[Any, bool]:
                parts = step.state["partitions"].items()
                return {key: True for key, row in parts if holds(row, step.state) is not None}

            for key, _, first, end in spans(self.steps, state):
                inner = [one for one in of_brokers if one[0] == key and within(one, first, end)]
                found.append(
                    {
                        "kind": kind,
                        "topic_id": key[0],
                        "topic_name": self.names[key[0]],
                        "partition_id": key[1],
                        **started(first, end),
                        "brokers": sorted({one[1] for one in inner}),
                        "spans": sorted(
                            ({"broker_id": one[1], **started(*one[2:])} for one in inner), key=span_order
                        ),
                    }
                )
        return found

    def _spans_of_brokers(self, kind: str, holds: Any) -> list[Any]:
        def state(step: Step) -> dict[Any, bool]:
            parts = step.state["partitions"].items()
            return {(key, broker): True for key, row in parts for broker in holds(row, step.state) or ()}

        return [(*key, first, end) for key, _, first, end in spans(self.steps, state)]

    def interval_totals(self) -> Rows:
        racks = {key: row["rack"] for step in self.steps for key, row in step.state["brokers"].items()}
        groups = defaultdict(list)
        for row in self.partition_intervals():
            key = row["topic_id"], row["partition_id"]
            groups[row["kind"], "topic", row["topic_name"]].append((key, row))
            for span in row["spans"]:
                broker = span["broker_id"]
                groups[row["kind"], "broker", str(broker)].append((key, span))
                groups[row["kind"], "rack", racks.get(broker) or ""].append((key, span))

        def lasted(row: Row) -> int:
            return (row["end_timestamp_ms"] or self.newest_ms) - row["start_timestamp_ms"]

        return [
            {
                "kind": kind,
                "scope": scope,
                "name": name,
                "intervals": len(rows),
                "partitions": len({key for key, _ in rows}),
                "duration_ms": sum(lasted(row) for _, row in rows),
                "longest_ms": max(lasted(row) for _, row in rows),
            }
            for (kind, scope, name), rows in groups.items()
        ]

    # The rest

    def producer_ids(self) -> Rows:
        found: Rows = []
        last = self.steps[0].state["producer_ids"].get("next") if self.steps[0].message is None else None
        if last is not None:
            unknown = dict.fromkeys(("offset", "timestamp_ms", "first_producer_id"))
            found.append(unknown | {"broker_id": -1, "broker_epoch": -1, "next_producer_id": last})
        for step in self.steps:
            if isinstance(step.message, ProducerIdsRecord):
                found.append(
                    {
                        "offset": step.offset,
                        "timestamp_ms": step.timestamp_ms,
                        "broker_id": step.message.broker_id,
                        "broker_epoch": step.message.broker_epoch,
                        "first_producer_id": last,
                        "next_producer_id": step.message.next_producer_id,
                    }
                )
                last = step.message.next_producer_id
        return found

    def audit(self) -> Rows:
        """Without resource and detail, which say the same as the other columns in words."""
        found = []
        created = {
            uuid_text(step.message.topic_id): step.offset
            for step in self.steps
            if isinstance(step.message, TopicRecord)
        }
        kraft_version: str | None = None  # no image has it
        for before, step in self.changed():
            operation = operation_of(step, before, self.names, created)
            if isinstance(step.message, FeatureLevelRecord) and step.message.name == "kraft.version":
                operation = (*operation[:4], kraft_version, operation[5])
                kraft_version = operation[5]
            if operation is not None:
                found.append(audit_row(step, operation))
        for move, end in self.reassigned():
            thing = ("TOPIC", move["topic_name"], str(move["partition_id"]))
            old, new = (",".join(map(str, move[name])) for name in ("old_replicas", "target_replicas"))
            if move["valid_from_offset"] is not None:
                first = next(step for step in self.steps if step.offset == move["valid_from_offset"])
                found.append(audit_row(first, ("reassign partition", *thing, old, new)))
            if move["outcome"] == "cancelled" and end is not None:
                found.append(audit_row(end, ("cancel reassignment", *thing, new, old)))
        return found


# What a record touches


def broker_of(message: Message | None) -> int | None:
    if isinstance(message, FenceBrokerRecord | UnfenceBrokerRecord):
        return message.id
    if isinstance(message, RegisterBrokerRecord | UnregisterBrokerRecord | BrokerRegistrationChangeRecord):
        return message.broker_id
    return None


def touches(step: Step, table: str) -> set[Any]:
    """The keys of a table that a record names."""
    message = step.message
    if table == "partitions" and isinstance(message, PartitionRecord | PartitionChangeRecord):
        return {(uuid_text(message.topic_id), message.partition_id)}
    if table == "brokers" and broker_of(message) is not None:
        return {broker_of(message)}
    if table == "configs" and isinstance(message, ConfigRecord):
        return {(message.resource_type, message.resource_name, message.name)}
    if table == "quotas" and isinstance(message, ClientQuotaRecord):
        return {(entity_of(message), message.key)}
    if table == "features" and isinstance(message, FeatureLevelRecord):
        return {message.name}
    if table == "scram_users" and isinstance(message, UserScramCredentialRecord):
        return {(message.mechanism, message.name)}
    return set()


def entity_of(message: ClientQuotaRecord) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((part.entity_type, part.entity_name) for part in message.entity))


# Periods


def spans(
    steps: Sequence[Step], state: Callable[[Step], dict[Any, Any]]
) -> list[tuple[Any, Any, Step, Step | None]]:
    """Key, value, first and end step of each time in which a key had a value."""
    found, current = [], {}
    for step in steps:
        now = state(step)
        for key in [key for key in current if current[key][0] != now.get(key)]:
            found += [(key, *current.pop(key), step)]
        for key in now.keys() - current.keys():
            current[key] = (now[key], step)
    return found + [(key, *ends, None) for key, ends in current.items()]


def validity(first: Step, end: Step | None) -> Row:
    return {
        "valid_from_offset": first.place[0],
        "valid_from_ms": first.place[1],
        "valid_to_offset": None if end is None else end.offset,
        "valid_to_ms": None if end is None else end.timestamp_ms,
    }


def without_validity(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("valid_")}


def with_duration(row: Row) -> Row:
    ends = row["valid_from_ms"], row["valid_to_ms"]
    return row | {"duration_ms": None if None in ends else ends[1] - ends[0]}


def ended(step: Step) -> Row:
    return {"ended_offset": step.offset, "ended_timestamp_ms": step.timestamp_ms}


def started(first: Step, end: Step | None) -> Row:
    return {
        "start_offset": first.place[0],
        "start_timestamp_ms": first.timestamp_ms,
        "end_offset": None if end is None else end.offset,
        "end_timestamp_ms": None if end is None else end.timestamp_ms,
        "duration_ms": None if end is None else end.timestamp_ms - first.timestamp_ms,
    }


def within(one: Any, first: Step, end: Step | None) -> bool:
    return first.offset <= one[2].offset and (end is None or one[2].offset < end.offset)


def span_order(row: Row) -> Any:
    return row["broker_id"], row["start_offset"] or -1


def end_move(move: Row, step: Step, outcome: str) -> Row:
    ends = {"valid_to_offset": step.offset, "valid_to_ms": step.timestamp_ms}
    return with_duration(move | ends | {"outcome": outcome})


def before_of(steps: Sequence[Step], step: Step, key: Any) -> Row | None:
    at = steps.index(step)
    return steps[at - 1].state["partitions"].get(key) if at else None


def without(those: list[int], others: list[int]) -> list[int]:
    return list(dict.fromkeys(one for one in those if one not in others))


# Unhealthy partitions


def lacking(row: Row) -> list[int]:
    return without(row["replicas"], row["adding_replicas"] + row["isr"])


def is_under_replicated(row: Row, _: State) -> list[int] | None:
    needed = len(without(row["replicas"], row["adding_replicas"]))
    return lacking(row) if len(row["isr"]) < needed else None


def is_under_min_isr(row: Row, state: State) -> list[int] | None:
    values = [state["configs"].get(key) for key in ((2, row["topic_name"], MIN_ISR), (4, "", MIN_ISR))]
    known = [int(one["value"]) for one in values if one is not None and one["value"].isdecimal()]
    needed = min([*known, 1][0], len(row["replicas"]))
    return lacking(row) if len(row["isr"]) < needed else None


def is_leaderless(row: Row, _: State) -> list[int] | None:
    may_return = row["isr"] or row["eligible_leader_replicas"]
    return row["replicas"] if row["leader"] == -1 and may_return else None


def is_offline(row: Row, _: State) -> list[int] | None:
    return row["replicas"] if row["leader"] == -1 else None


KINDS = {
    "under_replicated": is_under_replicated,
    "under_min_isr": is_under_min_isr,
    "leaderless": is_leaderless,
    "offline": is_offline,
}


# Operations


def audit_row(step: Step, operation: tuple[Any, ...]) -> Row:
    names = ("action", "kind", "name", "key", "old_value", "new_value")
    place = {"offset": step.offset, "epoch": step.epoch, "timestamp_ms": step.timestamp_ms}
    return place | dict(zip(names, operation, strict=True))


def operation_of(step: Step, before: State, names: dict[str, str], created: dict[str, int]) -> Any:
    """Action, kind, name, key, old and new value of an administrator's record; None for any other."""
    message = step.message
    if isinstance(message, TopicRecord):
        topic = uuid_text(message.topic_id)
        return ("create topic", "TOPIC", message.name, None, None, topic)
    if isinstance(message, RemoveTopicRecord):
        topic = uuid_text(message.topic_id)
        return ("delete topic", "TOPIC", names[topic], None, topic, None)
    if isinstance(message, PartitionRecord):
        topic = uuid_text(message.topic_id)
        if topic in created and step.batch_offset <= created[topic]:
            return None
        replicas = ",".join(map(str, message.replicas))
        return ("add partition", "TOPIC", names[topic], str(message.partition_id), None, replicas)
    if isinstance(message, ConfigRecord):
        kind, name = message.resource_type, message.name
        kind_name = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}[kind]
        old = before["configs"].get((kind, message.resource_name, name), {}).get("value")
        new = shown(kind, name, message.value) if message.value is not None else None
        action = "delete config" if new is None else "set config"
        return (action, kind_name, message.resource_name, name, old, new)
    return access_operation_of(message, before)


def acl_text(row: Row) -> str:
    words = (row["permission_type_name"], row["principal"], row["operation_name"], "from", row["host"])
    return " ".join(words) + f", {row['pattern_type_name']}"


def access_operation_of(message: Message | None, before: State) -> Any:
    if isinstance(message, AccessControlEntryRecord):
        row = acl_row(message.id, message)
        return ("create ACL", row["resource_type_name"], row["resource_name"], row["id"], None, acl_text(row))
    if isinstance(message, RemoveAccessControlEntryRecord):
        row = before["acls"][uuid_text(message.id)]
        return ("delete ACL", row["resource_type_name"], row["resource_name"], row["id"], acl_text(row), None)
    if isinstance(message, ClientQuotaRecord):
        entity = entity_of(message)
        old = before["quotas"].get((entity, message.key), {}).get("value")
        name = ", ".join(f"{kind} {one or '<default>'}" for kind, one in entity)
        new = None if message.remove else str(message.value)
        action = "delete quota" if message.remove else "set quota"
        return (action, "QUOTA", name, message.key, None if old is None else str(old), new)
    if isinstance(message, UserScramCredentialRecord | RemoveUserScramCredentialRecord):
        old = before["scram_users"].get((message.mechanism, message.name))
        is_set = isinstance(message, UserScramCredentialRecord)
        mechanism = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[message.mechanism]
        action = "set SCRAM credential" if is_set else "delete SCRAM credential"
        new = f"{message.iterations} iterations" if is_set else None
        was = None if old is None else f"{old['iterations']} iterations"
        return (action, "USER", message.name, mechanism, was, new)
    if isinstance(message, FeatureLevelRecord):
        old = before["features"].get(message.name)
        was = None if old is None else str(old["feature_level"])
        return ("set feature", "FEATURE", message.name, None, was, str(message.feature_level or "") or None)
    if isinstance(message, DelegationTokenRecord | RemoveDelegationTokenRecord):
        is_set = isinstance(message, DelegationTokenRecord)
        action = "set delegation token" if is_set else "delete delegation token"
        was = before["tokens"].get(message.token_id)
        old = None if was is None else f"owner {was['owner']}"
        new = f"owner {message.owner}" if is_set else None
        return (action, "DELEGATION_TOKEN", message.token_id, None, old, new)
    if isinstance(message, UnregisterBrokerRecord):
        return ("unregister broker", "BROKER", str(message.broker_id), None, None, None)
    return None
