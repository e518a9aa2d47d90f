"""Sentences about brokers, controllers, features, producer ids and metadata transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftd.history.event import Meaning
from kraftd.history.names import count, feature_level
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.zk_migration_state_record import ZkMigrationStateRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import METADATA_VERSION, version_name
from kraftd.types import uuid_text


def _broker(kind: str, broker_id: int, text: str, **details: Any) -> Meaning:
    return Meaning(kind, f"broker {broker_id} {text}", "broker", str(broker_id), details=details)


def _listeners(endpoints: Sequence[Any]) -> list[str]:
    return [
        f"{one.name}://[{one.host}]:{one.port}" if ":" in one.host else f"{one.name}://{one.host}:{one.port}"
        for one in endpoints
    ]


def broker_registered(image: Image, record: RegisterBrokerRecord) -> Meaning:
    broker_id, listeners = record.broker_id, _listeners(record.end_points)
    before = image.brokers.get(broker_id)
    again = before is not None
    restarted = before is not None and before.incarnation_id != record.incarnation_id
    text = "registered again" if again else "registered"
    text += " after a restart" if restarted else ""
    text += f" at {', '.join(listeners)}" if listeners else ""
    text += f", rack {record.rack}" if record.rack is not None else ""
    text += ", fenced" if record.fenced else ""
    return _broker(
        "broker-registered",
        broker_id,
        f"{text} (broker epoch {record.broker_epoch})",
        broker_epoch=record.broker_epoch,
        incarnation_id=uuid_text(record.incarnation_id),
        listeners=listeners,
        rack=record.rack,
        fenced=record.fenced,
        directories=[uuid_text(one) for one in record.log_dirs],
    )


def broker_unregistered(image: Image, record: UnregisterBrokerRecord) -> Meaning:
    return _broker("broker-unregistered", record.broker_id, "unregistered", broker_epoch=record.broker_epoch)


def broker_fenced(image: Image, record: FenceBrokerRecord) -> Meaning:
    return _broker("broker-fenced", record.id, "fenced", broker_epoch=record.epoch)


def broker_unfenced(image: Image, record: UnfenceBrokerRecord) -> Meaning:
    return _broker("broker-unfenced", record.id, "unfenced", broker_epoch=record.epoch)


def broker_changed(image: Image, record: BrokerRegistrationChangeRecord) -> Meaning:
    """A broker's change: fenced, unfenced, shutting down, other directories; the first is the kind."""
    broker_id = record.broker_id
    clauses: list[tuple[str, str]] = []
    if record.fenced:
        kind = "fenced" if record.fenced > 0 else "unfenced"
        clauses.append((f"broker-{kind}", kind))
    if record.in_controlled_shutdown > 0:
        clauses.append(("broker-shutting-down", "started a controlled shutdown"))
    if record.log_dirs:
        before = image.brokers.get(broker_id)
        gone = len(set(before.directories).difference(record.log_dirs)) if before is not None else 0
        text = f"has {count(len(record.log_dirs), 'online directory').replace('directorys', 'directories')}"
        clauses.append(("broker-directories-changed", text + (f", {gone} fewer" if gone else "")))
    if record.cordoned_log_dirs is not None:
        number = len(record.cordoned_log_dirs)
        text = f"has {number} cordoned {'directory' if number == 1 else 'directories'}"
        clauses.append(("broker-directories-cordoned", text))
    kind = clauses[0][0] if clauses else "broker-changed"
    text = ", ".join(clause for _, clause in clauses) or "changed its registration"
    return _broker(kind, broker_id, text, broker_epoch=record.broker_epoch, kinds=[one for one, _ in clauses])


def controller_registered(image: Image, record: RegisterControllerRecord) -> Meaning:
    listeners = _listeners(record.end_points)
    again = " again" if record.controller_id in image.controllers else ""
    text = f"controller {record.controller_id} registered{again} at {', '.join(listeners)}"
    details = {"listeners": listeners, "incarnation_id": uuid_text(record.incarnation_id)}
    return Meaning("controller-registered", text, "controller", str(record.controller_id), details=details)


def feature_changed(image: Image, record: FeatureLevelRecord) -> Meaning:
    name, level = record.name, record.feature_level
    before = image.features.get(name)
    details: dict[str, Any] = {"level": level, "before": before}
    if name == METADATA_VERSION:
        details["release"] = version_name(level)
    if level == 0 and before:
        text = f"feature {name} removed (was {feature_level(name, before)})"
        return Meaning("feature-changed", text, "feature", name, details=details)
    was = "" if before in (None, level) else f" (was {feature_level(name, before or 0)})"
    text = f"feature {name} set to {feature_level(name, level)}{was}"
    return Meaning("feature-changed", text, "feature", name, details=details)


def producer_ids_allocated(image: Image, record: ProducerIdsRecord) -> Meaning:
    to = f" given to broker {record.broker_id}" if record.broker_id >= 0 else " are taken"
    text = f"producer ids below {record.next_producer_id:,}{to}"
    details = {"next_producer_id": record.next_producer_id, "broker_id": record.broker_id}
    return Meaning("producer-ids-given", text, "cluster", details=details)


def transaction_begun(image: Image, record: BeginTransactionRecord) -> Meaning:
    name = f": {record.name}" if record.name else ""
    return Meaning("transaction-begun", f"metadata transaction began{name}", "cluster")


def transaction_ended(image: Image, record: EndTransactionRecord) -> Meaning:
    return Meaning("transaction-ended", "metadata transaction ended: all of it holds", "cluster")


def transaction_aborted(image: Image, record: AbortTransactionRecord) -> Meaning:
    since = image.transaction_offset
    back = "" if since is None else f": everything since offset {since} is taken back"
    why = f" ({record.reason})" if record.reason else ""
    return Meaning("transaction-aborted", f"metadata transaction aborted{back}{why}", "cluster")


def zk_migration(image: Image, record: ZkMigrationStateRecord) -> Meaning:
    text = f"state of the ZooKeeper migration set to {record.zk_migration_state}"
    return Meaning("zk-migration-state", text, "cluster")
