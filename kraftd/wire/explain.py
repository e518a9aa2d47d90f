"""Why a message could not be read or written: the slow walk that finds field, offset and reason.

Straight-line codecs only notice that something is wrong.  The walks here follow the table one field
at a time, check everything, and take time and memory bounded by what they are given.
"""

from __future__ import annotations

import struct
from typing import Any

from kraftd.wire.errors import EncodeError, ProtocolError, UnsupportedFieldError
from kraftd.wire.message import Message
from kraftd.wire.primitives import MAX_STRING_BYTES, Buffer
from kraftd.wire.table import FIXED, FieldRow, MessageTable, StructTable, within


def explain_decode(
    table: MessageTable, version: int, view: Buffer, offset: int, *, whole: bool
) -> ProtocolError:
    """The error that bytes deserve which a decoder has refused."""
    walk = DecodeWalk(table, version, view, offset)
    try:
        walk.struct(table.root, "")
        if whole and walk.at != len(view):
            walk.fail("", f"{len(view) - walk.at} bytes are left after the message")
    except ProtocolError as error:
        return error
    return ProtocolError(walk.title, "", offset, "the bytes cannot be read")


class DecodeWalk:
    """A position in bytes that are read field by field."""

    def __init__(self, table: MessageTable, version: int, view: Buffer, offset: int) -> None:
        self.table = table
        self.version = version
        self.view = view
        self.at = offset
        self.title = f"{table.name} v{version}"

    def fail(self, path: str, reason: str, at: int | None = None) -> None:
        raise ProtocolError(self.title, path, self.at if at is None else at, reason)

    def need(self, path: str, count: int) -> int:
        """The position of the next bytes, which are then behind; it fails when they are not there."""
        at, left = self.at, len(self.view) - self.at
        if count > left:
            self.fail(path, f"{count} bytes are needed, {max(left, 0)} are left")
        self.at += count
        return at

    def uvarint(self, path: str) -> int:
        start, value = self.at, 0
        for shift in range(0, 35, 7):
            byte = self.view[self.need(path, 1)]
            value |= (byte & 127) << shift
            if byte < 128:
                if value > 0xFFFFFFFF:
                    self.fail(path, "a varint is greater than 32 bits", start)
                return value
        self.fail(path, "a varint is longer than 5 bytes", start)
        return 0

    def length(self, row: FieldRow, path: str, *, array: bool) -> int:
        """A length or a count, -1 for null."""
        start = self.at
        if self.table.is_compact(row, self.version):
            length = self.uvarint(path) - 1
        else:
            width = 2 if row.type == "string" and not array else 4
            at = self.need(path, width)
            length = int.from_bytes(self.view[at : at + width], "big", signed=True)
        if length < -1:
            self.fail(path, f"a length of {length}", start)
        return length

    def struct(self, struct: StructTable, path: str) -> None:
        for row in struct.body(self.version):
            self.field(row, f"{path}.{row.attribute}" if path else row.attribute)
        if self.table.is_flexible(self.version):
            self.tags(struct, path)

    def tags(self, struct: StructTable, path: str) -> None:
        known = {row.tag: row for row in struct.tags(self.version)}
        seen: set[int] = set()
        start = self.at
        count = self.uvarint(path)
        if count * 2 > len(self.view) - self.at:
            self.fail(
                path, f"{count} tagged fields are announced, {len(self.view) - self.at} bytes are left", start
            )
        for _ in range(count):
            start = self.at
            tag = self.uvarint(path)
            size = self.uvarint(path)
            if tag in seen:
                self.fail(path, f"tag {tag} is there twice", start)
            seen.add(tag)
            row = known.get(tag)
            inner = path if row is None else f"{path}.{row.attribute}" if path else row.attribute
            body = self.at
            self.need(inner, size)
            if row is None:
                continue
            self.at = body
            self.field(row, inner)
            if self.at != body + size:
                self.fail(inner, f"tag {tag} announces {size} bytes, its value has {self.at - body}", start)

    def field(self, row: FieldRow, path: str) -> None:
        nullable = within(self.version, row.nullable)
        if not row.array:
            self.value(row, path, nullable)
            return
        start = self.at
        count = self.length(row, path, array=True)
        if count < 0:
            if not nullable:
                self.fail(path, "null, in a field that cannot be null", start)
            return
        least = max(1, self.table.element_bytes(row, self.version))
        left = len(self.view) - self.at
        if count * least > left:
            self.fail(
                path,
                f"{count} elements of at least {least} bytes are announced, {left} bytes are left",
                start,
            )
        if row.type in FIXED:
            self.need(path, count * FIXED[row.type][1])
            return
        for number in range(count):
            self.value(row, f"{path}[{number}]", nullable=False, element=True)

    def value(self, row: FieldRow, path: str, nullable: bool, *, element: bool = False) -> None:
        if row.type in FIXED:
            self.need(path, FIXED[row.type][1])
            return
        if not row.is_primitive():
            if nullable and self.view[self.need(path, 1)] > 127:
                return
            self.struct(self.table.structs[row.type], path)
            return
        start = self.at
        length = self.length(row, path, array=False)
        if length < 0:
            if not nullable:
                what = "an element" if element else "a field"
                self.fail(path, f"null, in {what} that cannot be null", start)
            return
        if row.type == "string" and length > MAX_STRING_BYTES:
            self.fail(path, f"a string of {length} bytes, more than {MAX_STRING_BYTES}", start)
        at = self.need(path, length)
        if row.type == "string":
            try:
                str(self.view[at : at + length], "utf-8")
            except UnicodeDecodeError as error:
                self.fail(path, f"not UTF-8: {error.reason}", at + error.start)


def explain_encode(table: MessageTable, message: Message, version: int, cause: Exception) -> Exception:
    """The error that a message deserves which an encoder has refused; the cause, if none is found."""
    try:
        EncodeWalk(table, version).struct(table.root, message, "")
    except EncodeError as error:
        return error
    return cause if str(cause) else EncodeError(f"{table.name} v{version}", "", "cannot be written")


class EncodeWalk:
    """Checks of each value of a message against its field."""

    def __init__(self, table: MessageTable, version: int) -> None:
        self.table = table
        self.version = version
        self.title = f"{table.name} v{version}"

    def struct(self, struct: StructTable, value: Any, path: str) -> None:
        if type(value).__name__ != struct.name:
            raise EncodeError(self.title, path, f"{struct.name} is wanted, not {short(value)}")
        for row in struct.fields:
            inner = f"{path}.{row.attribute}" if path else row.attribute
            item = getattr(value, row.attribute)
            if within(self.version, row.versions):
                self.field(row, item, inner)
            elif not row.ignorable and not self.is_default(row, item):
                raise UnsupportedFieldError(
                    self.title, inner, f"the version has no such field, so it cannot be {short(item)}"
                )
        self.tags(struct, value, path)

    def tags(self, struct: StructTable, value: Any, path: str) -> None:
        unknown = getattr(value, "unknown_tags", ())
        if unknown and not self.table.is_flexible(self.version):
            raise UnsupportedFieldError(self.title, path, "the version has no tagged fields")
        seen = {row.tag for row in struct.tags(self.version)}
        for tag, body in unknown:
            if not isinstance(tag, int) or not 0 <= tag < 0x7FFFFFFF:
                raise EncodeError(self.title, path, f"{tag!r} is no tag")
            if tag in seen:
                raise EncodeError(self.title, path, f"tag {tag} is not unknown, or there twice")
            if not isinstance(body, bytes | bytearray | memoryview):
                raise EncodeError(self.title, path, f"tag {tag} holds {short(body)}, not bytes")
            seen.add(tag)

    def is_default(self, row: FieldRow, value: Any) -> bool:
        if not row.array and not row.is_primitive() and row.default is not None:
            return bool(value == type(value)())
        return bool(value == row.default_value())

    def field(self, row: FieldRow, value: Any, path: str) -> None:
        if value is None:
            if within(self.version, row.nullable):
                return
            if row.nullable is not None:
                raise UnsupportedFieldError(self.title, path, "cannot be null in this version")
            raise EncodeError(self.title, path, "cannot be null")
        if not row.array:
            self.value(row, value, path)
            return
        if not isinstance(value, list | tuple):
            raise EncodeError(self.title, path, f"an array is wanted, not {short(value)}")
        for number, item in enumerate(value):
            self.value(row, item, f"{path}[{number}]")

    def value(self, row: FieldRow, value: Any, path: str) -> None:
        if not row.is_primitive():
            self.struct(self.table.structs[row.type], value, path)
        elif row.type in FIXED:
            self.fixed(row, value, path)
        elif row.type == "string":
            self.string(value, path)
        elif not isinstance(value, bytes | bytearray | memoryview):
            raise EncodeError(self.title, path, f"{row.type} are wanted, not {short(value)}")

    def fixed(self, row: FieldRow, value: Any, path: str) -> None:
        if row.type == "uuid":
            if not isinstance(value, bytes) or len(value) != 16:
                raise EncodeError(self.title, path, f"a uuid is 16 bytes, not {short(value)}")
            return
        try:
            struct.pack(">" + FIXED[row.type][0], value)
        except (struct.error, TypeError, OverflowError):
            raise EncodeError(self.title, path, f"{short(value)} is no {row.type}") from None

    def string(self, value: Any, path: str) -> None:
        if not isinstance(value, str):
            raise EncodeError(self.title, path, f"a string is wanted, not {short(value)}")
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise EncodeError(self.title, path, f"not writable as UTF-8: {error.reason}") from None
        if size > MAX_STRING_BYTES:
            raise EncodeError(self.title, path, f"a string of {size} bytes, more than {MAX_STRING_BYTES}")


def short(value: object) -> str:
    """A value as it may stand in an error's text."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
