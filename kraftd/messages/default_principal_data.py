"""DefaultPrincipalData: data, versions 0, flexible 0+.

Generated from schemas/DefaultPrincipalData.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DefaultPrincipalData(Message):
    type: str = ""
    name: str = ""
    token_authenticated: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DefaultPrincipalData", None, "data",
    (0, 0), (0, 32767),
    (
        ("DefaultPrincipalData", (
            ("type", "Type", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("token_authenticated", "TokenAuthenticated", "bool", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
