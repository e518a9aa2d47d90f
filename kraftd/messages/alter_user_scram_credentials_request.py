"""AlterUserScramCredentialsRequest: a request of key 51, versions 0, flexible 0+.

Generated from schemas/AlterUserScramCredentialsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ScramCredentialDeletion(Message):
    name: str = ""
    mechanism: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ScramCredentialUpsertion(Message):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AlterUserScramCredentialsRequest", 51, "request",
    (0, 0), (0, 32767),
    (
        ("AlterUserScramCredentialsRequest", (
            ("deletions", "Deletions", "ScramCredentialDeletion", 1, (0, 0), None, None, None, None, 0, ""),
            ("upsertions", "Upsertions", "ScramCredentialUpsertion", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("ScramCredentialDeletion", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("mechanism", "Mechanism", "int8", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("ScramCredentialUpsertion", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("mechanism", "Mechanism", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("iterations", "Iterations", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("salt", "Salt", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
            ("salted_password", "SaltedPassword", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
