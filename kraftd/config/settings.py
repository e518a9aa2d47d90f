"""One key as it was set."""

from __future__ import annotations

from kraftd.configdef.node import server_key

OVERRIDE = "--override"


class Setting:
    """One key as it was set: its text and place; `hidden` if the text came from a config provider."""

    __slots__ = ("hidden", "key", "text", "where")

    def __init__(self, key: str, text: str, where: str, *, hidden: bool = False) -> None:
        self.key = key
        self.text = text
        self.where = where
        self.hidden = hidden

    def __repr__(self) -> str:
        return f"{self.shown()} ({self.where})"

    def shown(self) -> str:
        """Key and text, a secret left out."""
        known = server_key(self.key)
        secret = self.hidden or (known is not None and known.sensitive) or _may_hold_secret(self.key)
        return f"{self.key}={'[hidden]' if secret else self.text}"


def _may_hold_secret(key: str) -> bool:
    """Return whether a key without a definition looks like that of a secret."""
    return any(word in key.lower() for word in ("password", "secret", "jaas", "credential", "passphrase"))
