"""Long messages in slices: encodes one with a very long list (to the bytes of ``encode``), and frees one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cache

import msgspec

from kraftd.wire.codec import encode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.table import FieldRow, MessageTable, class_of, table_of, within

MAX_STRUCTS_PER_SLICE = 2_000  # encoded and freed in about 2 ms

MAX_FREED_PER_SLICE = 10_000  # in about 1 ms

SlicedParts = Generator[None, None, list[Buffer]]


def encode_in_slices(
    message: Message, version: int, structs_per_slice: int = MAX_STRUCTS_PER_SLICE
) -> SlicedParts:
    """The parts of ``encode``, with a pause after each slice of the longest list of the message.

    A slice has at most `structs_per_slice` structs, including those in lists of its rows; a row with more of
    them is itself divided. Encoded rows are removed from their lists, because freeing very many at once would
    take as long. Raises EncodeError.
    """
    kind = type(message)
    place = _longest(kind, table_of(kind).name, version, message, structs_per_slice)
    if place is None:
        return encode(message, version)
    slices = _Slices(place, lambda struct: encode(struct, version))
    return (yield from slices.of(message, structs_per_slice))


class EncodedRows:
    """Rows of one list of a message of some class, encoded before the other rows of the list are known."""

    def __init__(self, kind: type[Message], attribute: str, version: int) -> None:
        places = _places(kind, table_of(kind).name, version)
        place = next(place for place in places if place.attribute == attribute)
        self._slices = _Slices(place, lambda struct: encode(struct, version))
        self._parts: list[Buffer] = []
        self._count = 0

    def add(self, rows: list[Message]) -> None:
        """Add some rows. Raises EncodeError."""
        self._parts += self._slices.encode_rows(rows)
        self._count += len(rows)

    def add_encoded(self, rows: Buffer, count: int) -> None:
        """Add rows that are encoded already."""
        self._parts.append(rows)
        self._count += count

    def encode(self, row: Message) -> bytes:
        """The bytes of one row, which is not added. Raises EncodeError."""
        return b"".join(self._slices.encode_rows([row]))

    def behind_in_slices(self, message: Message) -> SlicedParts:
        """The parts of a message with these rows behind those of its list, which it consumes; as a generator.

        Raises EncodeError.
        """
        return self._slices.of(message, MAX_STRUCTS_PER_SLICE, self._parts, self._count)

    def __repr__(self) -> str:
        return f"<EncodedRows {self._count}>"


def free_in_slices(
    message: Message, structs_per_slice: int = MAX_FREED_PER_SLICE
) -> Generator[None, None, None]:
    """Empty the lists of a message that is not read any more, with a pause after each slice of structs.

    Freeing a million structs at once takes tens of milliseconds.
    """
    table = table_of(type(message))
    yield from _free(table, table.root.name, message, structs_per_slice)


def _free(table: MessageTable, owner: str, struct: Message, budget: int) -> Generator[None, None, None]:
    for name, row_owner, inner in _inner_lists(table, owner):
        rows = getattr(struct, name)
        if type(rows) is not list:
            continue
        while rows:
            count = _last_rows(rows, inner, budget)
            if not count:  # the last row alone has more
                yield from _free(table, row_owner, rows[-1], budget)
                count = 1
            del rows[-count:]
            if rows:
                yield


def _last_rows(rows: list[Message], inner: tuple[str, ...], budget: int) -> int:
    """How many of the last rows have at most that many structs together."""
    if not inner:
        return min(len(rows), budget)
    count = 0
    for row in reversed(rows):
        budget -= struct_count(row, inner)
        if budget < 0:
            break
        count += 1
    return count


def _inner_lists(table: MessageTable, owner: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The lists of structs of a struct: attribute, struct of the rows, and their own lists."""

    def lists(name: str) -> list[FieldRow]:
        return [row for row in table.structs[name].fields if row.array and not row.is_primitive()]

    return tuple(
        (row.attribute, row.type, tuple(one.attribute for one in lists(row.type))) for row in lists(owner)
    )


def struct_count(struct: Message, lists: tuple[str, ...]) -> int:
    """How many structs these lists of a struct have, with the struct itself."""
    count = 1
    for name in lists:
        rows = getattr(struct, name)
        if rows:
            count += len(rows)
    return count


class _Place:
    """A list of structs in a struct of a message, as a version has it.

    `bare` is such a struct, as short as the version allows; the sizes before and behind its list follow from
    the table.
    """

    def __init__(self, kind: type[Message], owner: str, row: FieldRow, version: int) -> None:
        table = table_of(kind)
        body = table.structs[owner].body(version)
        at = body.index(row)
        self.kind = kind
        self.version = version
        self.attribute = row.attribute
        self.rows_owner = row.type
        self.rows_lists = tuple(one.attribute for one in _lists(table, row.type, version))
        self.is_compact = table.is_compact(row, version)
        self.bytes_before = sum(table.field_bytes(one, version) for one in body[:at])
        self.bytes_behind = sum(table.field_bytes(one, version) for one in body[at + 1 :])
        self.bytes_behind += table.is_flexible(version)  # the count of its tagged fields
        self.bare = _bare(kind, owner, version)
        behind = [*body[at + 1 :], *table.structs[owner].tags(version)]
        self.bare_behind = {one.attribute: getattr(self.bare, one.attribute) for one in behind}
        if table.flexible is not None:
            self.bare_behind["unknown_tags"] = ()

    def length(self, count: int) -> bytes:
        """The length of the list as it is encoded before its rows."""
        if not self.is_compact:
            return count.to_bytes(4)
        number, data = count + 1, bytearray()
        while number > 0x7F:
            data.append(number & 0x7F | 0x80)
            number >>= 7
        data.append(number)
        return bytes(data)

    def is_longer(self, struct: Message, limit: int) -> bool:
        """Return whether the rows of a struct's list have more structs than the limit."""
        for row in getattr(struct, self.attribute) or ():
            limit -= struct_count(row, self.rows_lists)
            if limit < 0:
                return True
        return False


class _Slices:
    """Encodes structs that have a long list in some place, by an encoder of whole structs.

    Large records stay parts of their own, which are not copied.
    """

    def __init__(self, place: _Place, encode_struct: Callable[[Message], list[Buffer]]) -> None:
        self._place = place
        self._encode_struct = encode_struct

    def of(
        self, struct: Message, budget: int, more: Sequence[Buffer] = (), more_count: int = 0
    ) -> SlicedParts:
        """The parts of a struct; consumes its list. `more` are encoded rows to follow."""
        place = self._place
        rows: list[Message] = getattr(struct, place.attribute)
        head, tail = self._around(struct)
        parts: list[Buffer] = [head + place.length(len(rows) + more_count)]
        while rows:
            some = self._take(rows, budget)
            inner = _longest(place.kind, place.rows_owner, place.version, some[0], budget)
            if inner is None:
                parts += self.encode_rows(some)
            else:  # then it is the only one
                parts += yield from _Slices(inner, lambda row: self.encode_rows([row])).of(some[0], budget)
            if rows:
                yield
        parts += more
        parts.append(tail)
        return parts

    def _around(self, struct: Message) -> tuple[bytes, bytes]:
        """The encoded bytes before the list and behind it."""
        place = self._place
        emptied = msgspec.structs.replace(struct, **{place.attribute: []})
        data = b"".join(self._encode_struct(emptied))
        shortest = b"".join(self._encode_struct(msgspec.structs.replace(emptied, **place.bare_behind)))
        split = len(shortest) - place.bytes_behind
        return data[: split - len(place.length(0))], data[split:]

    def _take(self, rows: list[Message], budget: int) -> list[Message]:
        """Remove and return the first rows, at most `budget` structs in all, but at least one row."""
        count = 0
        for row in rows:
            budget -= struct_count(row, self._place.rows_lists)
            if budget < 0 and count:
                break
            count += 1
        some = rows[:count]
        del rows[:count]
        return some

    def encode_rows(self, rows: list[Message]) -> list[Buffer]:
        """Rows of the list, without the list's length."""
        place = self._place
        parts = self._encode_struct(msgspec.structs.replace(place.bare, **{place.attribute: rows}))
        first = place.bytes_before + len(place.length(len(rows)))
        return _within(parts, first, sum(map(len, parts)) - place.bytes_behind)


def _within(parts: list[Buffer], first: int, end: int) -> list[Buffer]:
    """The bytes of the parts from one place to another."""
    found: list[Buffer] = []
    at = 0
    for part in parts:
        length = len(part)
        if at >= first and at + length <= end:
            found.append(part)
        elif at < end and at + length > first:
            found.append(part[max(0, first - at) : end - at])
        at += length
    return found


def _longest(kind: type[Message], owner: str, version: int, struct: Message, limit: int) -> _Place | None:
    """The longest of those lists of a struct that have more structs than the limit, if one has."""
    longest, most = None, 0
    for place in _places(kind, owner, version):
        if place.is_longer(struct, limit) and len(getattr(struct, place.attribute)) > most:
            longest, most = place, len(getattr(struct, place.attribute))
    return longest


@cache
def _places(kind: type[Message], owner: str, version: int) -> tuple[_Place, ...]:
    lists = _lists(table_of(kind), owner, version)
    return tuple(_Place(kind, owner, row, version) for row in lists)


def _lists(table: MessageTable, owner: str, version: int) -> list[FieldRow]:
    """The lists of structs among the untagged fields of a struct."""
    return [row for row in table.structs[owner].body(version) if row.array and not row.is_primitive()]


def _bare(kind: type[Message], owner: str, version: int) -> Message:
    """A struct of the least size that the version allows."""
    struct = class_of(kind, owner)()
    for row in table_of(kind).structs[owner].body(version):
        if row.array:
            setattr(struct, row.attribute, () if row.is_primitive() else [])
        elif row.type in ("string", "bytes", "records"):
            setattr(struct, row.attribute, "" if row.type == "string" else b"")
        elif not row.is_primitive():
            is_nullable = within(version, row.nullable)
            setattr(struct, row.attribute, None if is_nullable else _bare(kind, row.type, version))
    return struct
