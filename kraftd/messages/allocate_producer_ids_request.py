"""AllocateProducerIdsRequest: a request of key 67, versions 0, flexible 0+.

Generated from schemas/AllocateProducerIdsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AllocateProducerIdsRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AllocateProducerIdsRequest", 67, "request",
    (0, 0), (0, 32767),
    (
        ("AllocateProducerIdsRequest", (
            ("broker_id", "BrokerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 0), None, None, None, None, 0, -1),
        )),
    ),
)
