"""A decision's changes as events for people: the audit stream, and most lines of the log.

One event for each kind of change in a decision: a request that deletes 5,000 topics is one event with the
first MAX_NAMES names and a count. An event never holds values of configs, keys of credentials or secrets of
tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, astuple

from kraftd.history.story import SENTENCES
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    NO_LEADER_CHANGE,
    TOPIC_RESOURCE,
    PartitionState,
)
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine, Caller, Detail
from kraftd.types import uuid_text
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord

MAX_NAMES = 10
CREATED = "topics created"
ADDED = "partitions added"
PARTITIONS_CHANGED = "partitions changed"
_DIRECTORY_KINDS = ("broker-changed", "broker-directories-changed", "broker-directories-cordoned")
_OWN_NAMES = {"level": "finalized_level"}  # a line has a level of its own
_RESOURCES = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client metrics",
    GROUP_RESOURCE: "group",
}
_SESSION_OVER = "no heartbeat within broker.session.timeout.ms"

Fields = dict[str, Any]


class NamedTopics(Struct, gc=False):
    """The first MAX_NAMES of some topics, and the number of all."""

    names: list[str]
    count: int

    def fields(self) -> Fields:
        more = ", …" if self.count > MAX_NAMES else ""
        return {"count": self.count, "topics": ", ".join(self.names) + more}


class PartitionsChanged(Struct, gc=False):
    """How many partitions a decision changed, and how."""

    isr_shrunk: int = 0
    isr_expanded: int = 0
    leaders_moved: int = 0
    without_leader: int = 0
    reassigned: int = 0

    def __bool__(self) -> bool:
        return any(astuple(self))

    def fields(self) -> Fields:
        return {name: count for name, count in asdict(self).items() if count}


class _Summary(Struct):
    """The sum of one decision's records."""

    created: list[str] = field(default_factory=list)
    created_ids: set[bytes] = field(default_factory=set)
    deleted: list[str] = field(default_factory=list)
    added_partitions: dict[str, int] = field(default_factory=dict)
    configs: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    changed: PartitionsChanged = field(default_factory=PartitionsChanged)
    acls_added: int = 0
    acls_removed: int = 0
    users: list[str] = field(default_factory=list)
    quotas: list[str] = field(default_factory=list)
    tokens: int = 0
    others: list[tuple[str, Fields]] = field(default_factory=list)


def audit(
    image: Image, records: list[VersionedRecord], end_offset: int, call: Call | None
) -> list[AuditLine]:
    """The events of a decision's records, with the image before them and the call that requested it."""
    if len(records) == 1 and type(records[0].message) is NoOpRecord:
        return []  # every half a second of an idle controller
    caller = None
    if call is not None:
        caller = Caller(call.principal, call.client_id, call.host, call.key)
    created = _created_alone(records)
    if created:
        return [AuditLine(CREATED, end_offset, _named(created), caller)]
    added = _added_alone(image, records)
    if added is not None:
        return [AuditLine(ADDED, end_offset, one, caller) for one in added]
    changed = _changed_alone(image, records)
    if changed is not None:
        return [AuditLine(PARTITIONS_CHANGED, end_offset, changed, caller)] if changed else []
    found = _Summary()
    for record in records:
        take_in = _TAKE_IN.get(type(record.message))
        if take_in is not None:
            take_in(found, image, record.message)
    return [AuditLine(name, end_offset, detail, caller) for name, detail in _events(found, call)]


# -- the cases of very many records, which must be cheap


def _created_alone(records: list[VersionedRecord]) -> list[str]:
    """The names of topics, if the records only create them with their partitions. Else none."""
    names: list[str] = []
    for message, _ in records:
        kind = type(message)
        if kind is TopicRecord:
            names.append(message.name)  # type: ignore[attr-defined]
        elif kind is not PartitionRecord or not names:
            return []
    return names


def _added_alone(image: Image, records: list[VersionedRecord]) -> list[Fields] | None:
    """The topics with their numbers of new partitions, if the records only add those."""
    counts: dict[bytes, int] = {}
    for message, _ in records:
        if type(message) is not PartitionRecord:
            return None
        counts[message.topic_id] = counts.get(message.topic_id, 0) + 1
    return [{"topic": _topic_name(image, topic_id), "count": count} for topic_id, count in counts.items()]


def _changed_alone(image: Image, records: list[VersionedRecord]) -> PartitionsChanged | None:
    """The changes of partitions, if the records only change existing ones."""
    changed = PartitionsChanged()
    topic = None
    for message, _ in records:
        if type(message) is not PartitionChangeRecord:
            return None
        if topic is None or topic.id != message.topic_id:
            topic = image.topic(message.topic_id)
        before = None if topic is None else topic.partitions.get(message.partition_id)
        if before is not None:
            _count_change(changed, before, message)
    return changed


def _events(found: _Summary, call: Call | None) -> list[tuple[str, Fields | Detail]]:
    events: list[tuple[str, Fields | Detail]] = []
    moved = found.changed.fields()
    for name, fields in found.others:
        if name in ("broker fenced", "broker shutting down"):
            reason = _SESSION_OVER if call is None else "the broker asked for it"
            fields = {**fields, "reason": reason, **moved}
            moved = {}
        events.append((name, fields))
    if found.created:
        events.append((CREATED, _named(found.created)))
    if found.deleted:
        events.append(("topics deleted", _named(found.deleted)))
    for topic, count in found.added_partitions.items():
        events.append((ADDED, {"topic": topic, "count": count}))
    for resource, keys in found.configs.items():
        events.append(("configs changed", {"resource": resource, **keys}))
    if found.acls_added or found.acls_removed:
        events.append(("ACLs changed", {"added": found.acls_added, "removed": found.acls_removed}))
    if found.users:
        events.append(("SCRAM credentials changed", {"users": ", ".join(found.users[:MAX_NAMES])}))
    if found.quotas:
        events.append(("quotas changed", {"entities": ", ".join(found.quotas[:MAX_NAMES])}))
    if found.tokens:
        events.append(("delegation tokens changed", {"count": found.tokens}))
    if moved:
        events.append((PARTITIONS_CHANGED, moved))
    return events


def _named(names: list[str]) -> NamedTopics:
    return NamedTopics(names[:MAX_NAMES], len(names))


def _topic_name(image: Image, topic_id: bytes) -> str:
    topic = image.topic(topic_id)
    return uuid_text(topic_id) if topic is None else topic.name


# -- one function a record type


def _topic(found: _Summary, _: Image, record: TopicRecord) -> None:
    found.created.append(record.name)
    found.created_ids.add(record.topic_id)


def _topic_removed(found: _Summary, image: Image, record: RemoveTopicRecord) -> None:
    found.deleted.append(_topic_name(image, record.topic_id))


def _partition(found: _Summary, image: Image, record: PartitionRecord) -> None:
    if record.topic_id in found.created_ids:
        return
    name = _topic_name(image, record.topic_id)
    found.added_partitions[name] = found.added_partitions.get(name, 0) + 1


def _partition_changed(found: _Summary, image: Image, record: PartitionChangeRecord) -> None:
    before = image.partition(record.topic_id, record.partition_id)
    if before is not None:
        _count_change(found.changed, before, record)


def _count_change(changed: PartitionsChanged, before: PartitionState, record: PartitionChangeRecord) -> None:
    if record.isr is not None:
        ever = len({*before.isr, *record.isr})
        if ever > len(record.isr):
            changed.isr_shrunk += 1
        if ever > len(before.isr):
            changed.isr_expanded += 1
    if record.leader != NO_LEADER_CHANGE and record.leader != before.leader:
        changed.leaders_moved += 1
        changed.without_leader += record.leader < 0
    if record.replicas is not None or record.adding_replicas or record.removing_replicas:
        changed.reassigned += 1


def _config(found: _Summary, _: Image, record: ConfigRecord) -> None:
    kind = _RESOURCES.get(record.resource_type, f"resource {record.resource_type}")
    keys = found.configs.setdefault(f"{kind} {record.resource_name or '(default)'}", {})
    keys.setdefault("removed" if record.value is None else "set", []).append(record.name)


def _registered(found: _Summary, image: Image, record: RegisterBrokerRecord) -> None:
    before = image.brokers.get(record.broker_id)
    if before is None or (before.epoch, before.fenced) != (record.broker_epoch, record.fenced):
        _narrate(found, image, record)  # else the same metadata, written in another form


def _narrate(found: _Summary, image: Image, record: Message) -> None:
    """Note a broker, a controller or a feature as `kraftd history` shows it."""
    meaning = SENTENCES[type(record)](image, record)
    if meaning.kind in _DIRECTORY_KINDS:
        return  # doctor and metrics show them
    name: int | str = int(meaning.name) if meaning.name.isdecimal() else meaning.name
    details = {
        _OWN_NAMES.get(key, key): one
        for key, one in meaning.details.items()
        if one is not None and key != "kinds"
    }
    found.others.append((meaning.kind.replace("-", " "), {meaning.subject: name, **details}))


def _acl(found: _Summary, _: Image, __: AccessControlEntryRecord) -> None:
    found.acls_added += 1


def _acl_removed(found: _Summary, _: Image, __: RemoveAccessControlEntryRecord) -> None:
    found.acls_removed += 1


def _user(
    found: _Summary, _: Image, record: UserScramCredentialRecord | RemoveUserScramCredentialRecord
) -> None:
    if record.name not in found.users:
        found.users.append(record.name)


def _quota(found: _Summary, _: Image, record: ClientQuotaRecord) -> None:
    parts = (f"{one.entity_type} {one.entity_name or '(default)'}" for one in record.entity)
    entity = " and ".join(parts)
    if entity not in found.quotas:
        found.quotas.append(entity)


def _token(found: _Summary, _: Image, __: DelegationTokenRecord | RemoveDelegationTokenRecord) -> None:
    found.tokens += 1


_TAKE_IN: dict[type, Callable[[_Summary, Image, Any], None]] = {
    TopicRecord: _topic,
    RemoveTopicRecord: _topic_removed,
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition_changed,
    ConfigRecord: _config,
    RegisterBrokerRecord: _registered,
    BrokerRegistrationChangeRecord: _narrate,
    FenceBrokerRecord: _narrate,
    UnfenceBrokerRecord: _narrate,
    UnregisterBrokerRecord: _narrate,
    RegisterControllerRecord: _narrate,
    FeatureLevelRecord: _narrate,
    AccessControlEntryRecord: _acl,
    RemoveAccessControlEntryRecord: _acl_removed,
    UserScramCredentialRecord: _user,
    RemoveUserScramCredentialRecord: _user,
    ClientQuotaRecord: _quota,
    DelegationTokenRecord: _token,
    RemoveDelegationTokenRecord: _token,
}
