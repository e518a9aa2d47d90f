"""DescribeDelegationTokenRequest: a request of key 41, versions 1-3, flexible 2+.

Generated from schemas/DescribeDelegationTokenRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeDelegationTokenOwner(Message):
    principal_type: str = ""
    principal_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeDelegationTokenRequest", 41, "request",
    (1, 3), (2, 32767),
    (
        ("DescribeDelegationTokenRequest", (
            ("owners", "Owners", "DescribeDelegationTokenOwner", 1, (1, 3), (0, 32767), None, None, None, 0, ""),
        )),
        ("DescribeDelegationTokenOwner", (
            ("principal_type", "PrincipalType", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("principal_name", "PrincipalName", "string", 0, (1, 3), None, None, None, None, 0, ""),
        )),
    ),
)
