"""Which records are worth a line in the log, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.types import uuid_text
from kraftd.wire.record_frame import VersionedRecord

if TYPE_CHECKING:
    from kraftd.server.node import Node

Fields = dict[str, Any]
FENCED, UNFENCED = 1, -1  # in a BrokerRegistrationChangeRecord
SHUTTING_DOWN = 1
MOST_TOPICS = 8  # named in a line


def say_records(node: Node, records: list[VersionedRecord]) -> None:
    """Say what a decision has done to brokers, controllers, features and topics."""
    created: list[str] = []
    removed = 0
    for record in records:
        message = record.message
        kind = type(message)
        if kind is TopicRecord:
            created.append(message.name)  # type: ignore[attr-defined]
        elif kind is RemoveTopicRecord:
            removed += 1
        else:
            describe = _LINES.get(kind)
            if describe is not None:
                text, fields = describe(message)
                if text:
                    node.say("info", text, **fields)
    if created:
        more = ", …" if len(created) > MOST_TOPICS else ""
        node.say("info", "topics created", count=len(created), topics=", ".join(created[:MOST_TOPICS]) + more)
    if removed:
        node.say("info", "topics deleted", count=removed)


def _registered(record: RegisterBrokerRecord) -> tuple[str, Fields]:
    listeners = ", ".join(f"{end.name}://{end.host}:{end.port}" for end in record.end_points)
    incarnation = uuid_text(record.incarnation_id)
    return "broker registered", {
        "broker": record.broker_id,
        "broker_epoch": record.broker_epoch,
        "incarnation": incarnation,
        "listeners": listeners,
    }


def _changed(record: BrokerRegistrationChangeRecord) -> tuple[str, Fields]:
    fields = {"broker": record.broker_id, "broker_epoch": record.broker_epoch}
    if record.fenced == FENCED:
        return "broker fenced", fields
    if record.fenced == UNFENCED:
        return "broker unfenced", fields
    if record.in_controlled_shutdown == SHUTTING_DOWN:
        return "broker is shutting down", fields
    return "", fields


_LINES: dict[type, Callable[[Any], tuple[str, Fields]]] = {
    RegisterBrokerRecord: _registered,
    BrokerRegistrationChangeRecord: _changed,
    FenceBrokerRecord: lambda r: ("broker fenced", {"broker": r.id, "broker_epoch": r.epoch}),
    UnfenceBrokerRecord: lambda r: ("broker unfenced", {"broker": r.id, "broker_epoch": r.epoch}),
    UnregisterBrokerRecord: lambda r: (
        "broker unregistered",
        {"broker": r.broker_id, "broker_epoch": r.broker_epoch},
    ),
    RegisterControllerRecord: lambda r: (
        "controller registered",
        {"controller": r.controller_id, "incarnation": uuid_text(r.incarnation_id)},
    ),
    FeatureLevelRecord: lambda r: ("feature level", {"feature": r.name, "finalized_level": r.feature_level}),
}
