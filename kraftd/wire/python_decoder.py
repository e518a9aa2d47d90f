"""Writes the straight-line Python that decodes one version of a message.

Fields of fixed width that follow each other, with the length byte after them, are one call of
``struct``.  Nothing is checked that fails by itself: a slice that is cut short leaves the position
past the end, where the next read, or the caller, notices it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from struct import calcsize
from typing import Any

from kraftd.wire.message import Message
from kraftd.wire.primitives import (
    Arrays,
    Buffer,
    Malformed,
    in_order,
    long_string,
    unknown_tags,
    uuids,
    uvarint,
)
from kraftd.wire.python_writer import Writer
from kraftd.wire.table import FIXED, ZERO_UUID, FieldRow, MessageTable, StructTable, within

Decoder = Callable[[Buffer, int, int], tuple[Any, int]]

UNPACK_ARRAY = {letter: Arrays(letter, "unpack_from") for letter, _ in FIXED.values() if letter != "16s"}
RUNTIME: dict[str, object] = {
    "Malformed": Malformed,
    "ZERO_UUID": ZERO_UUID,
    "in_order": in_order,
    "long_string": long_string,
    "unknown_tags": unknown_tags,
    "uuids": uuids,
    "uvarint": uvarint,
}


def build_decoder(table: MessageTable, cls: type[Message], version: int) -> Decoder:
    """The function ``(buffer, position, size) -> (message, next position)`` for a valid version.

    It raises ``struct.error``, IndexError or Malformed for bad bytes, or returns a position past ``size``.
    A buffer of a message without ``records`` must be bytes.
    """
    decoder: Decoder = DecoderWriter(table, version).function("decode", cls, RUNTIME)
    return decoder


class DecoderWriter(Writer):
    """The lines of one function, and those of a function for each struct with tags of its own."""

    def __init__(self, table: MessageTable, version: int) -> None:
        super().__init__(table, version)
        self.views = table.has_records()
        self.targets: list[str] = []
        self.tag_readers: dict[str, list[str]] = {}

    def source(self) -> str:
        """The whole text; the main function is called ``decode``."""
        self.emit_head("def decode(buf, p, size):")
        result = self.struct(self.table.root)
        self.flush()
        self.emit(f"return {result}, p")
        main = self.lines
        return "\n".join([*(line for lines in self.tag_readers.values() for line in lines), *main])

    # lines

    def emit_head(self, head: str) -> None:
        self.lines = [head]
        self.indent = "    "

    def take(self, letter: str, target: str) -> None:
        """Put a value of fixed width at the end of the run that is not yet read."""
        self.run += letter
        self.targets.append(target)

    def uvarint(self, target: str) -> None:
        """Read a varint, which mostly is one byte."""
        self.emit(f"{target} = buf[p]; p += 1")
        self.emit(f"if {target} > 127: {target}, p = uvarint(buf, p - 1)")

    def flush(self) -> None:
        """Read the run."""
        if not self.run:
            return
        if self.run == "B":
            self.emit(f"{self.targets[0]} = buf[p]")
        else:
            comma = "," if len(self.targets) == 1 else ""
            self.emit(f"{', '.join(self.targets)}{comma} = {self.of_struct(self.run, 'unpack_from')}(buf, p)")
        self.emit(f"p += {calcsize('>' + self.run)}")
        self.run, self.targets = "", []

    # structs

    def struct(self, struct: StructTable) -> str:
        """Read a struct; the expression of it, which holds once the run is flushed."""
        values = {row.attribute: self.field(row) for row in struct.body(self.version)}
        arguments = [values.get(row.attribute) or self.default(row) for row in struct.fields]
        last = max((i for i, row in enumerate(struct.fields) if row.attribute in values), default=-1)
        made = f"{struct.name}({', '.join(arguments[: last + 1])})"
        if not self.flexible:
            return made
        count, result = self.name("tags"), self.name(struct.name.lower())
        self.take("B", count)
        self.flush()
        self.emit(f"{result} = {made}")
        self.enter(f"if {count}:")
        if struct.tags(self.version):
            self.emit(f"p = {self.tag_reader(struct)}(buf, p - 1, size, {result})")
        else:
            self.emit(f"{result}.unknown_tags, p = unknown_tags(buf, p - 1, size)")
        self.leave()
        return result

    def default(self, row: FieldRow) -> str:
        """The default of a field that the version does not have."""
        if row.default is None:
            return "None"
        if not row.is_primitive():
            return "[]" if row.array else f"{row.type}()"
        return "ZERO_UUID" if row.type == "uuid" and not row.array else repr(row.default_value())

    def tag_reader(self, struct: StructTable) -> str:
        """The name of the function that reads a struct's tag section into it."""
        name = f"tags_of_{struct.name}"
        if name in self.tag_readers:
            return name
        self.tag_readers[name] = []
        outer = self.lines, self.indent
        self.emit_head(f"def {name}(buf, p, size, into):")
        self.uvarint("count")
        self.emit("if count * 2 > size - p: raise Malformed")
        self.emit("seen = []; unknown = []")
        self.enter("for _ in range(count):")
        self.uvarint("tag")
        self.uvarint("length")
        self.emit("end = p + length")
        self.emit("if end > size: raise Malformed")
        for number, row in enumerate(struct.tags(self.version)):
            self.enter(f"{'elif' if number else 'if'} tag == {row.tag}:")
            self.emit("seen.append(tag)")
            value = self.field(row)
            self.flush()
            self.emit(f"into.{row.attribute} = {value}")
            self.leave()
        self.emit("else: unknown.append((tag, bytes(buf[p:end]))); p = end")
        self.emit("if p != end: raise Malformed")
        self.leave()
        self.emit("if len(seen) > 1 and len(set(seen)) < len(seen): raise Malformed")
        self.emit("if unknown: into.unknown_tags = in_order(unknown)")
        self.emit("return p")
        self.tag_readers[name] = self.lines
        self.lines, self.indent = outer
        return name

    # fields

    def field(self, row: FieldRow) -> str:
        """Read a field; the expression of its value, which holds once the run is flushed."""
        if row.array:
            return self.array(row)
        if row.type in FIXED:
            name = self.name(row.attribute)
            self.take(FIXED[row.type][0], name)
            return name
        if not row.is_primitive():
            return self.nested(row)
        name = self.name(row.attribute)
        self.text(row, name, within(self.version, row.nullable))
        return name

    def nested(self, row: FieldRow) -> str:
        """A struct; if it can be null, a byte comes first, negative for null; in tags a varint, then 0."""
        struct = self.table.structs[row.type]
        if not within(self.version, row.nullable):
            return self.struct(struct)
        name, present = self.name(row.attribute), self.name("present")
        tagged = within(self.version, row.tagged)
        if tagged:
            self.flush()
            self.uvarint(present)
        else:
            self.take("b", present)
            self.flush()
        self.emit(f"{name} = None")
        self.enter(f"if {present}:" if tagged else f"if {present} >= 0:")
        value = self.struct(struct)
        self.flush()
        self.emit(f"{name} = {value}")
        self.leave()
        return name

    def text(self, row: FieldRow, name: str, nullable: bool) -> None:
        """A string, bytes or records into a variable."""
        compact, string = self.table.is_compact(row, self.version), row.type == "string"
        n = self.name("n")
        self.take("B" if compact else "h" if string else "i", n)
        self.flush()
        if compact:
            longer = "long_string" if string else "uvarint"
            self.emit(f"if {n} > 127: {n}, p = {longer}(buf, p - 1)")
            self.enter(f"if {n}:")
            self.emit(f"e = p + {n} - 1")
        else:
            self.enter(f"if {n} >= 0:")
            self.emit(f"e = p + {n}")
        self.emit(f"{name} = {self.slice(row.type)}")
        self.emit("p = e")
        self.leave()
        if not nullable:
            self.emit("else: raise Malformed")
        elif compact:
            self.emit(f"else: {name} = None")
        else:
            self.emit(f"elif {n} == -1: {name} = None")
            self.emit("else: raise Malformed")

    def slice(self, kind: str) -> str:
        """The expression of the bytes from p to e, as a kind."""
        if kind == "records":
            return "memoryview(buf)[p:e]"
        if self.views:
            return "str(buf[p:e], 'utf-8', 'replace')" if kind == "string" else "bytes(buf[p:e])"
        return "buf[p:e].decode('utf-8', 'replace')" if kind == "string" else "buf[p:e]"

    def array(self, row: FieldRow) -> str:
        """An array into a variable, after a check that what is left can hold its elements."""
        name, n = self.name(row.attribute), self.name("n")
        compact = self.table.is_compact(row, self.version)
        self.take("B" if compact else "i", n)
        self.flush()
        if compact:
            self.emit(f"if {n} > 127: {n}, p = uvarint(buf, p - 1)")
            self.emit(f"{n} -= 1")
        nullable = within(self.version, row.nullable)
        if nullable:
            self.emit(f"if {n} == -1: {name} = None")
        self.enter(f"{'elif' if nullable else 'if'} {n} >= 0:")
        least = max(1, self.table.element_bytes(row, self.version))
        self.emit(f"if {n}{f' * {least}' if least > 1 else ''} > size - p: raise Malformed")
        if row.type in FIXED:
            self.fixed_elements(row, name, n)
        else:
            self.elements(row, name, n)
        self.leave()
        self.emit("else: raise Malformed")
        return name

    def fixed_elements(self, row: FieldRow, name: str, n: str) -> None:
        letter, width = FIXED[row.type]
        if row.type == "uuid":
            self.emit(f"{name} = uuids(buf, p, {n})")
        else:
            constant = f"array_{letter.replace('?', 'o')}"
            self.constants[constant] = UNPACK_ARRAY[letter]
            self.emit(f"{name} = {constant}[{n}](buf, p) if {n} else ()")
        self.emit(f"p += {n}{f' * {width}' if width > 1 else ''}")

    def elements(self, row: FieldRow, name: str, n: str) -> None:
        struct = self.table.structs.get(row.type)
        bulk = "" if struct is None else self.fixed_letters(struct)
        if struct is not None and bulk:
            self.bulk(struct, bulk, name, n)
            if not self.flexible:
                return
            self.enter("else:")
        self.emit(f"{name} = []")
        self.enter(f"for _ in range({n}):")
        if struct is not None:
            item = self.struct(struct)
            self.flush()
        else:
            item = self.name("item")
            self.text(row, item, nullable=False)
        self.emit(f"{name}.append({item})")
        self.leave()
        if struct is None:
            self.emit(f"{name} = tuple({name})")
        if bulk:
            self.leave()

    def fixed_letters(self, struct: StructTable) -> str:
        """The letters of a struct whose fields of this version are its first ones and all of fixed width."""
        body = struct.body(self.version)
        if len(body) < 2 or list(struct.fields[: len(body)]) != body:
            return ""
        if any(row.array or row.type not in FIXED for row in body):
            return ""
        return "".join(FIXED[row.type][0] for row in body)

    def bulk(self, struct: StructTable, letters: str, name: str, n: str) -> None:
        """Read all elements in one call if they have one width, and no tags in a flexible version."""
        if self.flexible:
            letters += "x"
        width = calcsize(">" + letters)
        self.constants["starmap"] = starmap
        unpack = self.of_struct(letters, "iter_unpack")
        made = f"list(starmap({struct.name}, {unpack}(buf[p:p + {width} * {n}])))"
        if not self.flexible:
            self.emit(f"{name} = {made}")
            self.emit(f"p += {width} * {n}")
            return
        self.enter(f"if buf[p + {width - 1}:p + {width} * {n}:{width}] == bytes({n}):")
        self.emit(f"{name} = {made}")
        self.emit(f"p += {width} * {n}")
        self.leave()
