"""RemoveUserScramCredentialRecord: a metadata record of key 22, versions 0, flexible 0+.

Generated from schemas/RemoveUserScramCredentialRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RemoveUserScramCredentialRecord(Message):
    name: str = ""
    mechanism: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RemoveUserScramCredentialRecord", 22, "metadata",
    (0, 0), (0, 32767),
    (
        ("RemoveUserScramCredentialRecord", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("mechanism", "Mechanism", "int8", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
