"""UnregisterBrokerRecord: a metadata record of key 1, versions 0, flexible 0+.

Generated from schemas/UnregisterBrokerRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UnregisterBrokerRecord(Message):
    broker_id: int = 0
    broker_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UnregisterBrokerRecord", 1, "metadata",
    (0, 0), (0, 32767),
    (
        ("UnregisterBrokerRecord", (
            ("broker_id", "BrokerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
