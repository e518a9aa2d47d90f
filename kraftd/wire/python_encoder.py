"""Writes the straight-line Python that encodes one version of a message.

The function calls ``w``, the append of a list of parts. It does so once for each run of fields of fixed width
and once for each string or the like.  What a version cannot carry raises ``Malformed``; the caller turns to
``kraftd.wire.explain`` for the field and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.wire.message import Message
from kraftd.wire.primitives import (
    UVARINTS,
    Arrays,
    Malformed,
    put_length,
    put_string_length,
    put_tag,
    put_tags,
    put_uuids,
)
from kraftd.wire.python_writer import Writer
from kraftd.wire.table import FIXED, ZERO_UUID, FieldRow, MessageTable, StructTable, within

Encoder = Callable[[Any, Callable[[Any], None]], None]

PACK_ARRAY = {letter: Arrays(letter, "pack") for letter, _ in FIXED.values() if letter != "16s"}
RUNTIME: dict[str, object] = {
    "Malformed": Malformed,
    "UVARINTS": UVARINTS,
    "ZERO_UUID": ZERO_UUID,
    "put_length": put_length,
    "put_string_length": put_string_length,
    "put_tag": put_tag,
    "put_tags": put_tags,
    "put_uuids": put_uuids,
}


def build_encoder(table: MessageTable, cls: type[Message], version: int) -> Encoder:
    """The function ``(message, append)`` for a valid version.

    It raises Malformed, ``struct.error``, AttributeError, TypeError or ValueError for a message that
    cannot be written.
    """
    encoder: Encoder = EncoderWriter(table, version).function("encode", cls, RUNTIME)
    return encoder


class EncoderWriter(Writer):
    """The lines of one function."""

    def __init__(self, table: MessageTable, version: int) -> None:
        super().__init__(table, version)
        self.values: list[str] = []
        self.append = "w"

    def source(self) -> str:
        """The whole text; the function is called ``encode``."""
        self.lines = ["def encode(m, w):"]
        self.struct(self.table.root, "m")
        self.flush()
        self.emit("return")
        return "\n".join(self.lines)

    # lines

    def take(self, letter: str, value: str) -> None:
        """Put a value of fixed width at the end of the run that is not yet written."""
        self.run += letter
        if letter != "x":
            self.values.append(value)

    def flush(self) -> None:
        """Write the run."""
        if not self.run:
            return
        if self.values:
            self.emit(f"{self.append}({self.of_struct(self.run, 'pack')}({', '.join(self.values)}))")
        else:
            self.emit(f"{self.append}({bytes(len(self.run))!r})")
        self.run, self.values = "", []

    def branch(self, head: str) -> tuple[str, list[str]]:
        """Enter a branch; return the current run, with which the other branch begins."""
        kept = self.run, list(self.values)
        self.enter(head)
        return kept

    def other(self, kept: tuple[str, list[str]]) -> None:
        """End a branch, its run written, and enter the other one."""
        self.flush()
        self.leave()
        self.run, self.values = kept
        self.enter("else:")

    # structs

    def struct(self, struct: StructTable, obj: str) -> None:
        """Write the struct that a variable holds."""
        for row in struct.absent(self.version):
            if not row.ignorable:
                self.emit(f"if {self.differs(row, obj)}: raise Malformed")
        for row in struct.body(self.version):
            self.field(row, f"{obj}.{row.attribute}")
        if not self.flexible:
            if self.table.flexible is not None:
                self.emit(f"if {obj}.unknown_tags: raise Malformed")
            return
        known = "[]"
        if struct.tags(self.version):
            self.flush()
            known = self.name("tags")
            self.emit(f"{known} = []")
            for row in struct.tags(self.version):
                self.tag(row, obj, known)
        present = f"{known} or {obj}.unknown_tags" if known != "[]" else f"{obj}.unknown_tags"
        reserved = tuple(row.tag for row in struct.tags(self.version))
        kept = self.branch(f"if {present}:")
        self.flush()
        self.emit(f"{self.append}(put_tags({known}, {obj}.unknown_tags, {reserved}))")
        self.other(kept)
        self.take("x", "")
        self.flush()
        self.leave()

    def differs(self, row: FieldRow, obj: str) -> str:
        """The condition that a field is not its default."""
        value = f"{obj}.{row.attribute}"
        if row.default is None:
            return f"{value} is not None"
        if not row.is_primitive():
            return f"{value} != []" if row.array else f"{value} != {row.type}()"
        return (
            f"{value} != {'ZERO_UUID' if row.type == 'uuid' and not row.array else repr(row.default_value())}"
        )

    def tag(self, row: FieldRow, obj: str, known: str) -> None:
        """Put a tagged field with the others, unless it is its default."""
        value = f"{obj}.{row.attribute}"
        self.enter(f"if {self.differs(row, obj)}:")
        if row.type in FIXED and not row.array and (row.tag or 0) < 128:
            width = FIXED[row.type][1]
            self.run, self.values = "BB", [str(row.tag), str(width)]
            self.fixed(row, value)
            self.emit(f"{known}.append({self.of_struct(self.run, 'pack')}({', '.join(self.values)}))")
            self.run, self.values = "", []
        else:
            outer, body = self.append, self.name("body")
            self.emit(f"{body} = []")
            self.append = self.name("w")
            self.emit(f"{self.append} = {body}.append")
            self.field(row, value)
            self.flush()
            self.append = outer
            self.emit(f"{known}.append(put_tag({row.tag}, b''.join({body})))")
        self.leave()

    # fields

    def field(self, row: FieldRow, value: str) -> None:
        if row.type in FIXED and not row.array:
            self.fixed(row, value)
            return
        name = self.name(row.attribute)
        self.emit(f"{name} = {value}")
        if not within(self.version, row.nullable):
            self.present(row, name)
            return
        nested = not row.is_primitive() and not row.array
        kept = self.branch(f"if {name} is None:")
        if nested:
            self.take("b", "0" if within(self.version, row.tagged) else "-1")
        elif self.table.is_compact(row, self.version):
            self.take("x", "")
        else:
            self.take("h" if row.type == "string" and not row.array else "i", "-1")
        self.other(kept)
        if nested:
            self.take("b", "1")
        self.present(row, name)
        self.flush()
        self.leave()

    def fixed(self, row: FieldRow, value: str) -> None:
        """A value of fixed width. ``struct`` would silently cut or pad a uuid."""
        if row.type == "uuid":
            name = self.name(row.attribute)
            self.emit(f"{name} = {value}")
            self.emit(f"if len({name}) != 16: raise Malformed")
            value = name
        self.take(FIXED[row.type][0], value)

    def present(self, row: FieldRow, name: str) -> None:
        """A value that is not null, of anything but fixed width."""
        if row.array:
            self.array(row, name)
        elif row.is_primitive():
            self.text(row, name)
        else:
            self.struct(self.table.structs[row.type], name)

    def text(self, row: FieldRow, name: str) -> None:
        """A string, bytes or records."""
        string = row.type == "string"
        if string:
            data = self.name("data")
            self.emit(f"{data} = {name}.encode()")
            name = data
        if self.table.is_compact(row, self.version):
            self.compact(name, "put_string_length" if string else "put_length")
        else:
            self.take("h" if string else "i", f"len({name})")
            self.flush()
        self.emit(f"{self.append}({name})")

    def compact(self, name: str, longer: str) -> None:
        """A compact length, in the run if it is one byte."""
        n = self.name("n")
        self.emit(f"{n} = len({name}) + 1")
        kept = self.branch(f"if {n} < 128:")
        self.take("B", n) if kept[0] else self.emit(f"{self.append}(UVARINTS[{n}])")
        self.other(kept)
        self.flush()
        self.emit(f"{self.append}({longer}({n}))")
        self.leave()

    def array(self, row: FieldRow, name: str) -> None:
        if self.table.is_compact(row, self.version):
            self.compact(name, "put_length")
        else:
            self.take("i", f"len({name})")
            self.flush()
        if row.type == "uuid":
            self.emit(f"{self.append}(put_uuids({name}))")
            return
        if row.type in FIXED:
            letter = FIXED[row.type][0]
            constant = f"array_{letter.replace('?', 'o')}"
            self.constants[constant] = PACK_ARRAY[letter]
            self.emit(f"if {name}: {self.append}({constant}[len({name})](*{name}))")
            return
        item = self.name("item")
        self.enter(f"for {item} in {name}:")
        if row.is_primitive():
            self.text(row, item)
        else:
            self.struct(self.table.structs[row.type], item)
            self.flush()
        self.leave()
