"""RemoveDelegationTokenRecord: a metadata record of key 26, versions 0, flexible 0+.

Generated from schemas/RemoveDelegationTokenRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RemoveDelegationTokenRecord(Message):
    token_id: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RemoveDelegationTokenRecord", 26, "metadata",
    (0, 0), (0, 32767),
    (
        ("RemoveDelegationTokenRecord", (
            ("token_id", "TokenId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
