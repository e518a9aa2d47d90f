"""Random messages of any class that can be encoded, with unusual values; and damage to their bytes."""

from __future__ import annotations

from random import Random
from typing import Any

from kraftd.wire.message import Message
from kraftd.wire.table import FieldRow, MessageTable, StructTable, class_of, table_of, within

NASTY = (0, 1, 2, 3, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def make(
    random: Random, cls: type[Message], table: MessageTable, struct: StructTable, version: int
) -> Message:
    """A message, or one of its structs, that the version can encode."""
    message = class_of(cls, struct.name)()
    for row in struct.fields:
        needed = row.default is None and not within(version, row.nullable)
        if within(version, row.versions) and (needed or random.random() < 0.8):
            setattr(message, row.attribute, value(random, cls, table, row, version))
    if table.is_flexible(version) and random.random() < 0.1:
        tags = sorted(
            {random.choice((100, 127, 128, 20000, 2**31 - 2)) for _ in range(random.randrange(1, 4))}
        )
        message.unknown_tags = tuple((tag, random.randbytes(random.choice((0, 3, 200)))) for tag in tags)  # type: ignore[attr-defined]
    return message


def value(random: Random, cls: type[Message], table: MessageTable, row: FieldRow, version: int) -> Any:
    if within(version, row.nullable) and random.random() < 0.2:
        return None
    if not row.array:
        return one(random, cls, table, row, version)
    count = random.choice((0, 1, 1, 2, 3, 9) if row.is_primitive() else (0, 1, 1, 2))
    items = [one(random, cls, table, row, version) for _ in range(count)]
    return tuple(items) if row.is_primitive() else items


def one(random: Random, cls: type[Message], table: MessageTable, row: FieldRow, version: int) -> Any:
    kind = row.type
    if kind.startswith(("int", "uint")):
        bits, low = int(kind.lstrip("uint")), 0 if kind[0] == "u" else -1
        return random.choice((0, 1, low, (1 << (bits if kind[0] == "u" else bits - 1)) - 1))
    if kind == "bool":
        return random.random() < 0.5
    if kind == "float64":
        return random.choice((0.0, -1.5, 1e300))
    if kind == "uuid":
        return bytes([random.randrange(4)]) * 16
    if kind == "string":
        return random.choice(("", "a", "é€𝄞", "x" * 127, "x" * 200))
    if kind in ("bytes", "records"):
        return bytes(random.choice((0, 1, 127, 5000)))
    return make(random, cls, table, table.structs[kind], version)


def damaged(random: Random, data: bytes) -> bytes:
    """Change, cut off, duplicate or insert some bytes."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed) + 1)
        what = random.randrange(5)
        if what == 0:
            changed[at:] = b""
        elif what == 1:
            changed[at:at] = bytes(random.choices(NASTY, k=random.randrange(1, 6)))
        elif what == 2:
            changed[at:at] = changed[: random.randrange(40)]
        elif at < len(changed):
            changed[at] = random.choice(NASTY) if what == 3 else random.randrange(256)
    return bytes(changed)


def grown(random: Random, cls: type[Message], version: int, count: int) -> Message:
    """A message whose arrays have that many elements, of a few different ones."""
    table = table_of(cls)
    message = make(random, cls, table, table.root, version)
    for row in table.root.body(version):
        if row.array:
            rows = [one(random, cls, table, row, version) for _ in range(5)]
            some = random.choices(rows, k=count)
            setattr(message, row.attribute, tuple(some) if row.is_primitive() else some)
    return message
