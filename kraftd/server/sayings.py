"""Which records are worth a line in the log, what it says, and when: once they are committed.

What a lost leadership takes back was never said.
"""

from __future__ import annotations

from collections import deque
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
Line = tuple[str, Fields]
FENCED, UNFENCED = 1, -1  # in a BrokerRegistrationChangeRecord
SHUTTING_DOWN = 1
MOST_TOPICS = 8  # named in a line


class Sayings:
    """Lines that wait for their records' commit, in the order of the log."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, list[Line], list[str]]] = deque()

    def note(self, end_offset: int, records: list[VersionedRecord]) -> None:
        """What there is to say of a decision's records, which end before that offset."""
        lines, created = lines_of(records)
        if lines or created:
            self._waiting.append((end_offset, lines, created))

    def release(self, node: Node, high_watermark: int) -> None:
        """Say what the high watermark has passed; topics committed together have one line."""
        waiting = self._waiting
        topics: list[str] = []
        while waiting and waiting[0][0] <= high_watermark:
            _, lines, created = waiting.popleft()
            topics += created
            if lines:
                _say_created(node, topics)
                topics = []
                for text, fields in lines:
                    node.say("info", text, **fields)
        _say_created(node, topics)

    def forget(self) -> None:
        """Leadership is lost: whoever leads now decides what becomes of the rest."""
        self._waiting.clear()

    def __repr__(self) -> str:
        return f"<Sayings {len(self._waiting)} wait>"


def _say_created(node: Node, topics: list[str]) -> None:
    if topics:
        more = ", …" if len(topics) > MOST_TOPICS else ""
        node.say("info", "topics created", count=len(topics), topics=", ".join(topics[:MOST_TOPICS]) + more)


def lines_of(records: list[VersionedRecord]) -> tuple[list[Line], list[str]]:
    """What a decision has done to brokers, controllers, features and topics; and which topics it created."""
    lines: list[Line] = []
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
                line = describe(message)
                if line[0]:
                    lines.append(line)
    if removed:
        lines.append(("topics deleted", {"count": removed}))
    return lines, created


def _registered(record: RegisterBrokerRecord) -> Line:
    listeners = ", ".join(f"{end.name}://{end.host}:{end.port}" for end in record.end_points)
    incarnation = uuid_text(record.incarnation_id)
    return "broker registered", {
        "broker": record.broker_id,
        "broker_epoch": record.broker_epoch,
        "incarnation": incarnation,
        "listeners": listeners,
    }


def _changed(record: BrokerRegistrationChangeRecord) -> Line:
    fields = {"broker": record.broker_id, "broker_epoch": record.broker_epoch}
    if record.fenced == FENCED:
        return "broker fenced", fields
    if record.fenced == UNFENCED:
        return "broker unfenced", fields
    if record.in_controlled_shutdown == SHUTTING_DOWN:
        return "broker is shutting down", fields
    return "", fields


_LINES: dict[type, Callable[[Any], Line]] = {
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
