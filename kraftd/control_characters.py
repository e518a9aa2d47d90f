"""Control characters of names and texts are shown as escapes, so that a terminal does not obey them.

Such texts come from the wire and from files. Printed as they are, they could move a terminal's cursor, hide
lines, or paste commands.
"""

from __future__ import annotations

from itertools import chain

# All control characters but line feed and tab, and those that change the direction or the end of a line.
_RANGES = ((0, 9), (0x0B, 0x20), (0x7F, 0xA0), (0x200E, 0x2010), (0x2028, 0x202F), (0x2066, 0x206A))
_UNSAFE = {code: f"\\u{code:04x}" for code in chain.from_iterable(range(*limits) for limits in _RANGES)}
_UNSAFE_IN_CELL = _UNSAFE | {ord(character): f"\\u{ord(character):04x}" for character in "\n\t"}


def visible(text: str) -> str:
    """The text with unsafe characters as JSON writes them, ``\\u001b``, so that JSON stays JSON."""
    return text.translate(_UNSAFE)


def visible_cell(text: str) -> str:
    """The same for a text in one line of a table: it has no line feed or tab either."""
    return text if text.isprintable() else text.translate(_UNSAFE_IN_CELL)


def visible_json(data: bytes) -> bytes:
    """The same for JSON as bytes. Encoders escape only what JSON forbids, which are characters below 32."""
    return data if data.isascii() and b"\x7f" not in data else visible(data.decode()).encode()
