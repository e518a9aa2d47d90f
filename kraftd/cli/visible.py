"""Standard output and error on which control characters are visible, not effective.

Names, principals and texts come from the wire and from files. Printed as they are, they could move a
terminal's cursor, hide lines, or paste commands.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

# All control characters but line feed and tab, and those that change the direction or the end of a line.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_UNSAFE_IN_CELL = re.compile(_UNSAFE.pattern[:-1] + "\n\t]")


def visible(text: str) -> str:
    """The text with unsafe characters as JSON writes them, ``\\u001b``, so that JSON stays JSON."""
    return _UNSAFE.sub(_escape, text)


def visible_cell(text: str) -> str:
    """The same for a text in one line of a table: it has no line feed or tab either."""
    return text if text.isprintable() else _UNSAFE_IN_CELL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


class VisibleStream:
    """A text stream that shows what is written to it; `raw` is for styles of this program's own."""

    encoding = "utf-8"  # a stream of another one would be replaced by the library that writes

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(visible(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def __repr__(self) -> str:
        return f"<VisibleStream over {self.raw!r}>"


def show_control_characters() -> None:
    """Make standard output and error visible streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, VisibleStream):
            setattr(sys, name, VisibleStream(stream))


def raw(stream: TextIO) -> TextIO:
    """The stream for texts whose foreign parts were made visible already."""
    return stream.raw if isinstance(stream, VisibleStream) else stream
