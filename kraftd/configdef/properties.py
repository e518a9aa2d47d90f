"""Java's ``.properties`` format, with the line of each entry (``java.util.Properties.load``).

Written here because a daemon's start waits for it, and importing the javaproperties package takes longer
than all that kraftd does with its file; the tests compare it with that package and with Java.
"""

from __future__ import annotations

import re

from kraftd.named_tuple import NamedTuple

_LINE = re.compile(r"\r\n|\r|\n")
_KEY_END = re.compile(r"(?<!\\)((?:\\\\)*)([ \t\f]*[=:][ \t\f]*|[ \t\f]+)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


class Entry(NamedTuple):
    """A key and its value, and the number of the line on which they begin, from 1."""

    key: str
    value: str
    line: int


class PropertiesError(ValueError):
    """A line that is not of the format."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


def parse(text: str) -> list[Entry]:
    """The entries of a file in their order; a repeated key has one entry for each occurrence. Raises
    PropertiesError.
    """
    entries = []
    logical, first = "", 0
    for number, raw in enumerate(_LINE.split(text), 1):
        line = raw.lstrip(_BLANK)
        if not first:
            if not line or line[0] in "#!":
                continue
            first = number
        logical += line
        # An odd number of backslashes at the end carries the line on.
        if (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1]
            first = first if logical else 0
            continue
        if logical:
            entries.append(entry(logical, first))
        logical, first = "", 0
    if logical:
        entries.append(entry(logical, first))
    return entries


def entry(logical: str, line: int) -> Entry:
    """The key and value of a logical line: parted by the first ``=``, ``:`` or blank that is not escaped."""
    end = _KEY_END.search(logical)
    if end is None:
        return Entry(unescape(logical, line), "", line)
    return Entry(unescape(logical[: end.end(1)], line), unescape(logical[end.end() :], line), line)


def unescape(text: str, line: int) -> str:
    """A text with its escapes resolved. Raises PropertiesError for a ``\\u`` without four hexadecimal
    digits.
    """

    def plain(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] == "u":
            if len(escape) == 1:
                raise PropertiesError(line, "\\u must be followed by four hexadecimal digits")
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    if "\\" not in text:
        return text
    # Two \u escapes can make one character beyond the basic plane.
    joined = _ESCAPE.sub(plain, text)
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
