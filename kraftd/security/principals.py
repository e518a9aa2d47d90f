"""Principals: the identity of a caller, in Kafka's terms (``User:alice``)."""

from __future__ import annotations

import msgspec

USER = "User"


class Principal(msgspec.Struct, frozen=True, gc=False):
    """The identity of a caller: `User:ANONYMOUS` without authentication.

    `token_authenticated` says that a delegation token authenticated it; decisions do not depend on it.
    """

    type: str
    name: str
    token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """The principal of a text like ``User:alice``; names may hold colons. Raises ValueError."""
    type, colon, name = text.partition(":")
    if not colon or not type or not name:
        raise ValueError(f"{text!r} must be type:name, like User:alice")
    return Principal(type, name)
