"""AddOffsetsToTxnRequest: a request of key 25, versions 0-4, flexible 3+.

Generated from schemas/AddOffsetsToTxnRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AddOffsetsToTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AddOffsetsToTxnRequest", 25, "request",
    (0, 4), (3, 32767),
    (
        ("AddOffsetsToTxnRequest", (
            ("transactional_id", "TransactionalId", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("producer_id", "ProducerId", "int64", 0, (0, 4), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("group_id", "GroupId", "string", 0, (0, 4), None, None, None, None, 0, ""),
        )),
    ),
)
