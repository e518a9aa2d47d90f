"""DescribeTransactionsRequest: a request of key 65, versions 0, flexible 0+.

Generated from schemas/DescribeTransactionsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeTransactionsRequest(Message):
    transactional_ids: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeTransactionsRequest", 65, "request",
    (0, 0), (0, 32767),
    (
        ("DescribeTransactionsRequest", (
            ("transactional_ids", "TransactionalIds", "string", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
