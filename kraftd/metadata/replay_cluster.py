"""Replay of brokers, controllers, features, producer ids and metadata transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

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
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.features import supported_features
from kraftd.metadata.journal import ABSENT
from kraftd.metadata.metadata_version import KRAFT_VERSION
from kraftd.metadata.state import BrokerState, ControllerState
from kraftd.metadata.tables import Tables
from kraftd.types import Endpoint, in_kafkas_order

_READABLE = supported_features(unstable=True)


def register_broker(tables: Tables, record: RegisterBrokerRecord) -> None:
    """Replace the registration of the same id as a whole."""
    state = BrokerState(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        _endpoints(record.end_points),
        {f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        record.is_migrating_zk_broker,
        tables.shared_values.ids(in_kafkas_order(record.log_dirs)),
        None if record.cordoned_log_dirs is None else tables.shared_values.ids(record.cordoned_log_dirs),
    )
    _put_broker(tables, state)
    tables.put(tables.registration_offsets, state.id, tables.offset)


def unregister_broker(tables: Tables, record: UnregisterBrokerRecord) -> None:
    _broker(tables, record.broker_id, record.broker_epoch)
    tables.put(tables.brokers, record.broker_id, ABSENT)
    tables.put(tables.registration_offsets, record.broker_id, ABSENT)
    tables.put(tables.broker_offsets, record.broker_id, ABSENT)


def fence_broker(tables: Tables, record: FenceBrokerRecord) -> None:
    broker = _broker(tables, record.id, record.epoch)
    _put_broker(tables, replace(broker, fenced=True))


def unfence_broker(tables: Tables, record: UnfenceBrokerRecord) -> None:
    broker = _broker(tables, record.id, record.epoch)
    _put_broker(tables, replace(broker, fenced=False))


def change_broker(tables: Tables, record: BrokerRegistrationChangeRecord) -> None:
    """Change a registration. fenced: 1 fences, -1 unfences, 0 keeps; in_controlled_shutdown: 1 sets, 0 keeps;
    no directories keep the old ones.
    """
    broker = _broker(tables, record.broker_id, record.broker_epoch)
    if record.fenced not in (-1, 0, 1):
        raise ReplayError(f"broker {broker.id}: fenced is {record.fenced}, not -1, 0 or 1")
    if record.in_controlled_shutdown not in (0, 1):
        raise ReplayError(
            f"broker {broker.id}: in controlled shutdown is {record.in_controlled_shutdown}, not 0 or 1"
        )
    directories, cordoned = broker.directories, broker.cordoned_directories
    if record.log_dirs:
        directories = tables.shared_values.ids(in_kafkas_order(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        cordoned = tables.shared_values.ids(record.cordoned_log_dirs)
    changed = replace(
        broker,
        fenced=broker.fenced if record.fenced == 0 else record.fenced == 1,
        in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=directories,
        cordoned_directories=cordoned,
    )
    _put_broker(tables, changed)


def register_controller(tables: Tables, record: RegisterControllerRecord) -> None:
    state = ControllerState(
        record.controller_id,
        record.incarnation_id,
        record.zk_migration_ready,
        _endpoints(record.end_points),
        {f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
    )
    tables.put(tables.controllers, state.id, state)


def set_feature(tables: Tables, record: FeatureLevelRecord) -> None:
    """Set a feature's level; 0 removes the feature. A level that this software does not know is an error, as
    in Kafka: later records could mean anything. kraft.version is skipped, because the quorum keeps its level.
    """
    name, level = record.name, record.feature_level
    low, high = _READABLE.get(name, (0, 0))
    if not low <= level <= high:
        raise ReplayError(
            f"{name} {level} is not supported, only {low} to {high}: run software that knows it, or set "
            "another level with the software that wrote it"
        )
    if name != KRAFT_VERSION:
        tables.put(tables.features, name, level or ABSENT)


def set_producer_ids(tables: Tables, record: ProducerIdsRecord) -> None:
    if record.next_producer_id <= tables.next_producer_id:
        raise ReplayError(
            f"next producer id {record.next_producer_id} is not above {tables.next_producer_id}"
        )
    tables.set_field("next_producer_id", record.next_producer_id)


def begin_transaction(tables: Tables, record: BeginTransactionRecord) -> None:
    if tables.transaction_offset is not None:
        raise ReplayError(f"the transaction of offset {tables.transaction_offset} is still open")
    tables.begin_transaction()


def end_transaction(tables: Tables, record: EndTransactionRecord) -> None:
    if tables.transaction_offset is None:
        raise ReplayError("no transaction is open")
    tables.end_transaction()


def abort_transaction(tables: Tables, record: AbortTransactionRecord) -> None:
    if tables.transaction_offset is None:
        raise ReplayError("no transaction is open")
    tables.abort_transaction()


def nothing(tables: Tables, record: object) -> None:
    """Change nothing: the record only moves the offset (NoOp, and the state of a finished ZooKeeper
    migration).
    """
    tables.set_field("idle_count", tables.idle_count + 1)


def _put_broker(tables: Tables, state: BrokerState) -> None:
    tables.put(tables.brokers, state.id, state)
    tables.put(tables.broker_offsets, state.id, tables.offset)


def _broker(tables: Tables, broker_id: int, broker_epoch: int) -> BrokerState:
    broker = tables.brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"broker {broker_id} is not registered")
    if broker.epoch != broker_epoch:
        raise ReplayError(f"broker {broker_id} has broker epoch {broker.epoch}, not {broker_epoch}")
    return broker


def _endpoints(endpoints: Iterable[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in endpoints)
