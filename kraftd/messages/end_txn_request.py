"""EndTxnRequest: a request of key 26, versions 0-5, flexible 3+.

Generated from schemas/EndTxnRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EndTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "EndTxnRequest", 26, "request",
    (0, 5), (3, 32767),
    (
        ("EndTxnRequest", (
            ("transactional_id", "TransactionalId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("producer_id", "ProducerId", "int64", 0, (0, 5), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (0, 5), None, None, None, None, 0, 0),
            ("committed", "Committed", "bool", 0, (0, 5), None, None, None, None, 0, 0),
        )),
    ),
)
