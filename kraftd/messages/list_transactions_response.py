"""ListTransactionsResponse: a response of key 66, versions 0-2, flexible 0+.

Generated from schemas/ListTransactionsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TransactionState(Message):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ListTransactionsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: list[TransactionState] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListTransactionsResponse", 66, "response",
    (0, 2), (0, 32767),
    (
        ("ListTransactionsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("unknown_state_filters", "UnknownStateFilters", "string", 1, (0, 2), None, None, None, None, 0, ""),
            ("transaction_states", "TransactionStates", "TransactionState", 1, (0, 2), None, None, None, None, 0, ""),
        )),
        ("TransactionState", (
            ("transactional_id", "TransactionalId", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("producer_id", "ProducerId", "int64", 0, (0, 2), None, None, None, None, 0, 0),
            ("transaction_state", "TransactionState", "string", 0, (0, 2), None, None, None, None, 0, ""),
        )),
    ),
)
