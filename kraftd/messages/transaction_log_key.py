"""TransactionLogKey: the key of a transaction coordinator's record of key 0, versions 0.

Generated from schemas/TransactionLogKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TransactionLogKey(Message):
    transactional_id: str = ""


SCHEMA: Table = (
    "TransactionLogKey", 0, "coordinator-key",
    (0, 0), None,
    (
        ("TransactionLogKey", (
            ("transactional_id", "TransactionalId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
