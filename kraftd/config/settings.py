"""One key as somebody set it."""

from __future__ import annotations

from kraftd.configdef.node import server_key

OVERRIDE = "--override"


class Setting:
    """One key as it was set: its text and where."""

    __slots__ = ("key", "text", "where")

    def __init__(self, key: str, text: str, where: str) -> None:
        self.key = key
        self.text = text
        self.where = where

    def __repr__(self) -> str:
        return f"{self.shown()} ({self.where})"

    def shown(self) -> str:
        """Key and text, a secret left out."""
        known = server_key(self.key)
        secret = known is not None and known.sensitive
        return f"{self.key}={'[hidden]' if secret else self.text}"
