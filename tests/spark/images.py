"""The expected rows of tables, from an image of the state: kraftd's own, or that of Kafka's classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.metadata.image import Image
from kraftd.redaction.configs import shown
from kraftd.spark.replicas import ReplicaLog
from kraftd.types import uuid_text
from kraftd.wire.batch import decompressed, iter_batches, records
from kraftd.wire.record_frame import decode_record
from tests.metadata.test_kafka_oracle import ask
from tests.spark.logs import framed

Rows = list[dict[str, Any]]

STATE_TABLES = ("topics", "partitions", "brokers", "configs", "acls", "features", "quotas", "scram_users")


def expected_rows(image: Image) -> dict[str, Rows]:
    """Table -> rows, with the columns that an image has."""
    return {
        "topics": [
            {"name": topic.name, "topic_id": uuid_text(topic.id), "partition_count": len(topic.partitions)}
            for topic in image.topics.values()
        ],
        "partitions": [
            {
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
                "eligible_leader_replicas": list(part.elr),
                "last_known_elr": list(part.last_known_elr),
            }
            for topic in image.topics.values()
            for index, part in topic.partitions.items()
        ],
        "brokers": [
            {
                "broker_id": broker.id,
                "broker_epoch": broker.epoch,
                "incarnation_id": uuid_text(broker.incarnation_id),
                "rack": broker.rack,
                "fenced": broker.fenced,
                "in_controlled_shutdown": broker.in_controlled_shutdown,
            }
            for broker in image.brokers.values()
        ],
        "configs": [
            {
                "resource_type": kind,
                "resource_name": resource,
                "name": name,
                "value": shown(kind, name, value),
            }
            for (kind, resource), values in image.configs.items()
            for name, value in values.items()
        ],
        "acls": [
            {
                "id": uuid_text(acl_id),
                "principal": acl.principal,
                "operation": acl.operation,
                "host": acl.host,
            }
            for acl_id, acl in image.acls.items()
        ],
        "features": [
            {"name": name, "feature_level": level} for name, level in image.features.items() if level
        ],
        "quotas": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "key": key,
                "value": value,
            }
            for entity, values in image.quotas.items()
            for key, value in values.items()
        ],
        "scram_users": [
            {"name": name, "mechanism": mechanism, "iterations": state.iterations}
            for (mechanism, name), state in image.scram.items()
        ],
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
    image = Image()
    for offset, text in enumerate(answer.split(",")):
        image.apply(decode_record(bytes.fromhex(text))[0], offset, 1)
    return image


def in_order(rows: Rows) -> Rows:
    """Rows in one order, whatever order they came in."""
    return sorted(rows, key=repr)
