"""DelegationTokenRecord: a metadata record of key 10, versions 0, flexible 0+.

Generated from schemas/DelegationTokenRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DelegationTokenRecord(Message):
    owner: str = ""
    requester: str = ""
    renewers: tuple[str, ...] = ()
    issue_timestamp: int = 0
    max_timestamp: int = 0
    expiration_timestamp: int = 0
    token_id: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DelegationTokenRecord", 10, "metadata",
    (0, 0), (0, 32767),
    (
        ("DelegationTokenRecord", (
            ("owner", "Owner", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("requester", "Requester", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("renewers", "Renewers", "string", 1, (0, 0), None, None, None, None, 0, ""),
            ("issue_timestamp", "IssueTimestamp", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("max_timestamp", "MaxTimestamp", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("expiration_timestamp", "ExpirationTimestamp", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("token_id", "TokenId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
