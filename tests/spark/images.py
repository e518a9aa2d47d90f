"""The expected rows of tables, from an image of the state: kraftd's own, or that of Kafka's classes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.history.names import RESOURCE_TYPES, SCRAM_MECHANISMS
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import AclState, BrokerState, PartitionState, TopicState
from kraftd.redaction.configs import shown
from kraftd.spark.inputs.replicas import ReplicaLog
from kraftd.types import uuid_text
from kraftd.wire.batch import decompressed, iter_batches, records
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record
from tests.metadata.test_kafka_oracle import ask
from tests.spark.logs import framed

Row = dict[str, Any]
Rows = list[Row]
State = dict[str, dict[Any, Row]]
"""Table -> key -> row."""

STATE_TABLES = ("topics", "partitions", "brokers", "configs", "acls", "features", "quotas", "scram_users")


def expected_rows(image: Image) -> dict[str, Rows]:
    """Table -> rows, with the columns that an image has."""
    state = state_of(image)
    return {name: list(state[name].values()) for name in STATE_TABLES}


def state_of(image: Image) -> State:
    """The rows of the state tables by key, with the columns that an image has; beside them what only other
    tables need.
    """
    return {
        "topics": {
            uuid_text(topic.id): {
                "name": topic.name,
                "topic_id": uuid_text(topic.id),
                "partition_count": len(topic.partitions),
            }
            for topic in image.topics.values()
        },
        "partitions": {
            (uuid_text(topic.id), index): partition_row(topic, index, part)
            for topic in image.topics.values()
            for index, part in topic.partitions.items()
        },
        "brokers": {broker.id: broker_row(broker) for broker in image.brokers.values()},
        "configs": {
            (kind, resource, name): {
                "resource_type": kind,
                "resource_type_name": RESOURCE_TYPES[kind],
                "resource_name": resource,
                "name": name,
                "value": shown(kind, name, value),
            }
            for (kind, resource), values in image.configs.items()
            for name, value in values.items()
        },
        "acls": {uuid_text(acl_id): acl_row(acl_id, acl) for acl_id, acl in image.acls.items()},
        "features": {
            name: {"name": name, "feature_level": level} for name, level in image.features.items() if level
        },
        "quotas": {
            (tuple(sorted(entity)), key): {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in sorted(entity)],
                "key": key,
                "value": value,
            }
            for entity, values in image.quotas.items()
            for key, value in values.items()
        },
        "scram_users": {
            (mechanism, name): {
                "name": name,
                "mechanism": mechanism,
                "mechanism_name": SCRAM_MECHANISMS[mechanism],
                "iterations": state.iterations,
            }
            for (mechanism, name), state in image.scram.items()
        },
        "tokens": {name: {"owner": token.owner} for name, token in image.delegation_tokens.items()},
        "producer_ids": {"next": image.next_producer_id} if image.next_producer_id >= 0 else {},
    }


def partition_row(topic: TopicState, index: int, part: PartitionState) -> Row:
    return {
        "topic_id": uuid_text(topic.id),
        "topic_name": topic.name,
        "partition_id": index,
        "leader": part.leader,
        "isr": list(part.isr),
        "replicas": list(part.replicas),
        "removing_replicas": list(part.removing_replicas),
        "adding_replicas": list(part.adding_replicas),
        "leader_recovery_state": part.leader_recovery_state,
        "leader_epoch": part.leader_epoch,
        "partition_epoch": part.partition_epoch,
        "directories": [uuid_text(one) for one in part.directories],
        "eligible_leader_replicas": list(part.elr),
        "last_known_elr": list(part.last_known_elr),
    }


def broker_row(broker: BrokerState) -> Row:
    cordoned = broker.cordoned_directories
    return {
        "broker_id": broker.id,
        "broker_epoch": broker.epoch,
        "incarnation_id": uuid_text(broker.incarnation_id),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "end_points": [
            {
                "name": one.listener,
                "host": one.host,
                "port": one.port,
                "security_protocol": one.security_protocol,
            }
            for one in broker.listeners
        ],
        "features": [
            {"name": name, "min_supported_version": low, "max_supported_version": high}
            for name, (low, high) in broker.features.items()
        ],
        "log_dirs": [uuid_text(one) for one in broker.directories],
        "cordoned_log_dirs": None if cordoned is None else [uuid_text(one) for one in cordoned],
        "is_migrating_zk_broker": broker.is_migrating_zk,
    }


def acl_row(acl_id: bytes, acl: AclState | AccessControlEntryRecord) -> Row:
    return {
        "id": uuid_text(acl_id),
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
        "resource_type_name": AclResourceType(acl.resource_type).name,
        "pattern_type_name": AclPatternType(acl.pattern_type).name,
        "operation_name": AclOperation(acl.operation).name,
        "permission_type_name": AclPermission(acl.permission_type).name,
    }


def kafka_image(log: ReplicaLog) -> Image:
    """The image by Kafka's classes of a whole log, up to its end when it was planned.

    The classes are flushed after each record: in one big delta they keep configs of deleted topics and lose
    SCRAM users. A transaction that is open at the end is aborted.
    """
    values = [
        bytes(record.value or b"")
        for split in log.splits
        for batch in iter_batches(Path(split.path).read_bytes()[split.start : split.end])
        if not batch.header.is_control
        for record in records(decompressed(batch))
    ]
    kinds = [type(decode_record(value)[0]).__name__ for value in values]
    markers = [kind for kind in kinds if kind.endswith("TransactionRecord")]
    if markers and markers[-1].startswith("Begin"):
        values.append(framed(AbortTransactionRecord()))
    (answer,) = ask(["image " + ",".join(value.hex() for value in values)])
    return _image_of(answer)


def kafka_images(messages: Iterable[Message]) -> list[Image]:
    """The image by Kafka's classes after each record."""
    (answer,) = ask(["images " + ",".join(framed(message).hex() for message in messages)])
    return [_image_of(one) for one in answer.split(";")]


def _image_of(records_of_image: str) -> Image:
    image = Image()
    for offset, text in enumerate(records_of_image.split(",")):
        image.apply(decode_record(bytes.fromhex(text))[0], offset, 1)
    return image


SETS = ("end_points", "features", "log_dirs", "cordoned_log_dirs")
OWN = ("unknown_tagged_fields",)


def comparable(row: Row) -> Row:
    """A row whose sets are in order, and whose structs have no unknown tagged fields."""
    return {
        name: sorted((_known(one) for one in value), key=repr) if name in SETS and value else _known(value)
        for name, value in row.items()
    }


def _known(value: Any) -> Any:
    if isinstance(value, list):
        return [_known(one) for one in value]
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items() if name not in OWN}
    return value


def in_order(rows: Rows) -> Rows:
    """Rows in one order, whatever order they came in."""
    return sorted((comparable(dict(sorted(row.items()))) for row in rows), key=repr)
