"""ProducerIdsRecord: a metadata record of key 15, versions 0, flexible 0+.

Generated from schemas/ProducerIdsRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ProducerIdsRecord(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    next_producer_id: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ProducerIdsRecord", 15, "metadata",
    (0, 0), (0, 32767),
    (
        ("ProducerIdsRecord", (
            ("broker_id", "BrokerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 0), None, None, None, None, 0, -1),
            ("next_producer_id", "NextProducerId", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
