"""ListTransactionsRequest: a request of key 66, versions 0-2, flexible 0+.

Generated from schemas/ListTransactionsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ListTransactionsRequest(Message):
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ListTransactionsRequest", 66, "request",
    (0, 2), (0, 32767),
    (
        ("ListTransactionsRequest", (
            ("state_filters", "StateFilters", "string", 1, (0, 2), None, None, None, None, 0, ""),
            ("producer_id_filters", "ProducerIdFilters", "int64", 1, (0, 2), None, None, None, None, 0, ""),
            ("duration_filter", "DurationFilter", "int64", 0, (1, 2), None, None, None, None, 0, -1),
            ("transactional_id_pattern", "TransactionalIdPattern", "string", 0, (2, 2), (2, 32767), None, None, None, 0, None),
        )),
    ),
)
