"""Standard output and error on which control characters are visible, not effective."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from kraftd.control_characters import visible


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
