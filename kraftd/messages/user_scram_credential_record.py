"""UserScramCredentialRecord: a metadata record of key 11, versions 0, flexible 0+.

Generated from schemas/UserScramCredentialRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UserScramCredentialRecord(Message):
    name: str = ""
    mechanism: int = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UserScramCredentialRecord", 11, "metadata",
    (0, 0), (0, 32767),
    (
        ("UserScramCredentialRecord", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("mechanism", "Mechanism", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("salt", "Salt", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
            ("stored_key", "StoredKey", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
            ("server_key", "ServerKey", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
            ("iterations", "Iterations", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
