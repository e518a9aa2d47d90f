"""CreateDelegationTokenRequest: a request of key 38, versions 1-3, flexible 2+.

Generated from schemas/CreateDelegationTokenRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class CreatableRenewers(Message):
    principal_type: str = ""
    principal_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "CreateDelegationTokenRequest", 38, "request",
    (1, 3), (2, 32767),
    (
        ("CreateDelegationTokenRequest", (
            ("owner_principal_type", "OwnerPrincipalType", "string", 0, (3, 3), (3, 32767), None, None, None, 0, ""),
            ("owner_principal_name", "OwnerPrincipalName", "string", 0, (3, 3), (3, 32767), None, None, None, 0, ""),
            ("renewers", "Renewers", "CreatableRenewers", 1, (1, 3), None, None, None, None, 0, ""),
            ("max_lifetime_ms", "MaxLifetimeMs", "int64", 0, (1, 3), None, None, None, None, 0, 0),
        )),
        ("CreatableRenewers", (
            ("principal_type", "PrincipalType", "string", 0, (1, 3), None, None, None, None, 0, ""),
            ("principal_name", "PrincipalName", "string", 0, (1, 3), None, None, None, None, 0, ""),
        )),
    ),
)
