"""Finds why a message could not be read or written: a slow walk determines field, offset and reason.

Straight-line codecs only notice that something is wrong.  The walks here follow the table one field
at a time, check everything, and take time and memory bounded by what they are given.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

from msgspec import Struct

from kraftd.wire.errors import EncodeError, ProtocolError, UnsupportedFieldError
from kraftd.wire.message import Message
from kraftd.wire.primitives import MAX_STRING_BYTES, Buffer
from kraftd.wire.table import FIXED, FieldRow, MessageTable, StructTable, within


def explain_decode(table: MessageTable, version: int, view: Buffer, offset: int) -> ProtocolError:
    """The error of bytes that a decoder has refused."""
    title = f"{table.name} v{version}"
    try:
        DecodeWalk(table, version, view, offset).struct(table.name)
    except Found as found:
        return ProtocolError(title, found.path(), found.offset, found.reason)
    return ProtocolError(title, "", offset, "the bytes cannot be read")


def refuse_elements(table: MessageTable, version: int, view: Buffer, offset: int, max_elements: int) -> None:
    """Raise ProtocolError if a message has more elements in all, or another fault before these."""
    walk = DecodeWalk(table, version, view, offset)
    walk.elements_left = walk.max_elements = max_elements
    try:
        walk.struct(table.name)
    except Found as found:
        title = f"{table.name} v{version}"
        raise ProtocolError(title, found.path(), found.offset, found.reason) from None


class Found(Exception):
    """A fault and its byte; the steps to it are added on the way back to the message."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason
        self.steps: list[str | int] = []

    def path(self) -> str:
        """The steps as ``topics[2].partitions``."""
        text = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in reversed(self.steps))
        return text.removeprefix(".")


class Step(Struct, frozen=True):
    """The expected form of a field in the version that is read."""

    attribute: str
    width: int  # of a value of fixed width, else 0
    head: int  # width of its length, 0 when that is a varint
    text: bool
    struct: str | None
    array: bool
    array_head: int
    nullable: bool
    tagged: bool
    least: int  # bytes of a value


class DecodeWalk:
    """A position in bytes that are read field by field."""

    def __init__(self, table: MessageTable, version: int, view: Buffer, offset: int) -> None:
        self.table = table
        self.version = version
        self.flexible = table.is_flexible(version)
        self.view = view
        self.size = len(view)
        self.at = offset
        self.max_elements = self.elements_left = sys.maxsize
        self.plans: dict[str, tuple[list[Step], dict[int, Step]]] = {}

    def plan(self, name: str) -> tuple[list[Step], dict[int, Step]]:
        """The fields of a struct and, by their tags, its tagged ones."""
        struct = self.table.structs[name]
        body = [self.step(row) for row in struct.body(self.version)]
        plan = body, {row.tag or 0: self.step(row) for row in struct.tags(self.version)}
        self.plans[name] = plan
        return plan

    def step(self, row: FieldRow) -> Step:
        compact = self.table.is_compact(row, self.version)
        return Step(
            row.attribute,
            FIXED[row.type][1] if row.type in FIXED else 0,
            0 if compact else 2 if row.type == "string" else 4,
            row.type == "string",
            None if row.is_primitive() else row.type,
            bool(row.array),
            0 if compact else 4,
            within(self.version, row.nullable),
            within(self.version, row.tagged),
            max(1, self.table.element_bytes(row, self.version)),
        )

    def need(self, count: int) -> int:
        """The position of the next bytes, which are then consumed; fails if they are missing."""
        at = self.at
        if count > self.size - at:
            raise Found(at, f"{count} bytes are needed, {max(self.size - at, 0)} are left")
        self.at = at + count
        return at

    def uvarint(self) -> int:
        start, value = self.at, 0
        for shift in range(0, 35, 7):
            byte = self.view[self.need(1)]
            value |= (byte & 127) << shift
            if byte < 128:
                if value > 0xFFFFFFFF:
                    raise Found(start, "a varint is greater than 32 bits")
                return value
        raise Found(start, "a varint is longer than 5 bytes")

    def length(self, head: int, nullable: bool) -> int:
        """A length or a count, -1 for null."""
        start = self.at
        if head:
            at = self.need(head)
            length = int.from_bytes(self.view[at : at + head], "big", signed=True)
        else:
            length = self.uvarint() - 1
        if length < -1:
            raise Found(start, f"a length of {length}")
        if length < 0 and not nullable:
            raise Found(start, "null, where it cannot be null")
        return length

    def allow(self, at: int, count: int) -> None:
        """Count elements that are announced at a byte; fails if they are too many."""
        self.elements_left -= count
        if self.elements_left < 0:
            raise Found(at, f"more than {self.max_elements} elements in all")

    def struct(self, name: str) -> None:
        body, known = self.plans.get(name) or self.plan(name)
        step = None
        try:
            for step in body:
                self.field(step)
        except Found as found:
            found.steps.append(step.attribute if step else name)
            raise
        if self.flexible:
            self.tags(known)

    def tags(self, known: dict[int, Step]) -> None:
        seen: set[int] = set()
        start = self.at
        count = self.uvarint()
        if count * 2 > self.size - self.at:
            raise Found(start, f"{count} tagged fields are announced, {self.size - self.at} bytes are left")
        self.allow(start, count)
        for _ in range(count):
            start = self.at
            tag = self.uvarint()
            size = self.uvarint()
            if tag in seen:
                raise Found(start, f"tag {tag} is there twice")
            seen.add(tag)
            body = self.need(size)
            if tag in known:
                self.tag(known[tag], start, body, size)

    def tag(self, step: Step, start: int, body: int, size: int) -> None:
        """A known tagged field again, whose bytes are there."""
        self.at = body
        try:
            self.field(step)
            if self.at != body + size:
                reason = f"its tag announces {size} bytes, its value has {self.at - body}"
                raise Found(start, reason)
        except Found as found:
            found.steps.append(step.attribute)
            raise

    def field(self, step: Step) -> None:
        if not step.array:
            self.value(step, step.nullable)
            return
        start = self.at
        count = self.length(step.array_head, step.nullable)
        left = self.size - self.at
        if count * step.least > left:
            reason = f"{count} elements of at least {step.least} bytes are announced, {left} bytes are left"
            raise Found(start, reason)
        self.allow(start, max(count, 0))
        if step.width:
            self.need(max(count, 0) * step.width)
            return
        number = 0
        try:
            for number in range(count):  # noqa: B007 (the handler needs it)
                self.value(step, nullable=False)
        except Found as found:
            found.steps.append(number)
            raise

    def value(self, step: Step, nullable: bool) -> None:
        if step.width:
            self.need(step.width)
        elif step.struct is not None:
            if not nullable or self.is_there(step):
                self.struct(step.struct)
        else:
            self.variable(step, nullable)

    def is_there(self, step: Step) -> bool:
        """Return whether a struct that can be null follows."""
        return self.uvarint() > 0 if step.tagged else self.view[self.need(1)] < 128

    def variable(self, step: Step, nullable: bool) -> None:
        """A string, bytes or records."""
        start = self.at
        length = self.length(step.head, nullable)
        if step.text and length > MAX_STRING_BYTES:
            raise Found(start, f"a string of {length} bytes, more than {MAX_STRING_BYTES}")
        self.need(max(length, 0))


def explain_encode(table: MessageTable, message: Message, version: int, cause: Exception) -> Exception:
    """The error of a message that an encoder has refused; the cause itself if none is found."""
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
            return value is not None and bool(value == type(value)())
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
    """A value for an error's text."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
