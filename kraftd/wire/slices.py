"""Encodes a message with a very long list in slices of rows: the same bytes as from ``encode``."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache

import msgspec

from kraftd.wire.codec import encode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.table import MessageTable, table_of

LONG = 500  # longer lists are encoded in slices


def encode_in_turns(
    message: Message, version: int, rows_a_turn: int = LONG
) -> Generator[None, None, list[Buffer]]:
    """The parts of ``encode``, with a pause after each slice of rows of the message's last list.

    Encoded rows are removed from the message, because freeing very many at once would take as long. Raises
    EncodeError.
    """
    table = table_of(type(message))
    name = _last_list(type(message), version)
    rows = getattr(message, name) if name else None
    if name is None or rows is None or len(rows) <= rows_a_turn or _has_tags(message, version):
        return encode(message, version)
    frame = msgspec.structs.replace(message, **{name: []})
    head = b"".join(encode(frame, version))
    flexible = table.is_flexible(version)
    tail = head[-1:] if flexible else b""  # no tags
    before = len(head) - len(tail) - (1 if flexible else 4)
    parts: list[Buffer] = [head[:before] + _length(len(rows), flexible)]
    while rows:
        some = rows[:rows_a_turn]
        del rows[:rows_a_turn]
        setattr(frame, name, some)
        data = b"".join(encode(frame, version))
        parts.append(data[before + len(_length(len(some), flexible)) : len(data) - len(tail)])
        if rows:
            yield
    parts.append(tail)
    return parts


@cache
def _last_list(kind: type[Message], version: int) -> str | None:
    """The attribute of the list of structs with which a message of that version ends, tags left aside."""
    table: MessageTable = table_of(kind)
    body = table.root.body(version)
    if not body:
        return None
    last = body[-1]
    is_list = bool(last.array) and not last.is_primitive()
    ordinary = table.is_compact(last, version) == table.is_flexible(version)
    return last.attribute if is_list and ordinary else None


def _has_tags(message: Message, version: int) -> bool:
    """Return whether a tagged field of the message itself is to be written."""
    tagged = table_of(type(message)).root.tags(version)
    return any(getattr(message, row.attribute) != row.default_value() for row in tagged)


def _length(count: int, flexible: bool) -> bytes:
    if not flexible:
        return count.to_bytes(4)
    number, data = count + 1, bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
