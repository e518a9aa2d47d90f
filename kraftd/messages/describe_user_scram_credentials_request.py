"""DescribeUserScramCredentialsRequest: a request of key 50, versions 0, flexible 0+.

Generated from schemas/DescribeUserScramCredentialsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UserName(Message):
    name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeUserScramCredentialsRequest", 50, "request",
    (0, 0), (0, 32767),
    (
        ("DescribeUserScramCredentialsRequest", (
            ("users", "Users", "UserName", 1, (0, 0), (0, 32767), None, None, None, 0, ""),
        )),
        ("UserName", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
