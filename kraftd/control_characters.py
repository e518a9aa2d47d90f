"""Control characters of names and texts are shown as escapes, so that a terminal does not obey them.

Such texts come from the wire and from files. Printed as they are, they could move a terminal's cursor, hide
lines, or paste commands.
"""

from __future__ import annotations

import re

# All control characters but line feed and tab, and those that change the direction or the end of a line.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_UNSAFE_IN_CELL = re.compile(_UNSAFE.pattern[:-1] + "\n\t]")


def visible(text: str) -> str:
    """The text with unsafe characters as JSON writes them, ``\\u001b``, so that JSON stays JSON."""
    return _UNSAFE.sub(_escape, text)


def visible_cell(text: str) -> str:
    """The same for a text in one line of a table: it has no line feed or tab either."""
    return text if text.isprintable() else _UNSAFE_IN_CELL.sub(_escape, text)


def visible_json(data: bytes) -> bytes:
    """The same for JSON as bytes. Encoders escape only what JSON forbids, which are characters below 32."""
    return data if data.isascii() and b"\x7f" not in data else visible(data.decode()).encode()


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
