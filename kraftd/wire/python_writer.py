"""What the writers of decoders and encoders share: lines of Python, and the function that is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any

from kraftd.wire.message import Message
from kraftd.wire.table import MessageTable, class_of


class Writer:
    """Writes one function for one version of a message. `run` are the letters of `struct` of neighbouring
    fields of fixed width.
    """

    def __init__(self, table: MessageTable, version: int) -> None:
        self.table = table
        self.version = version
        self.flexible = table.is_flexible(version)
        self.constants: dict[str, object] = {}
        self.lines: list[str] = []
        self.indent = "    "
        self.run = ""
        self.names = 0

    def source(self) -> str:
        """The whole text."""
        raise NotImplementedError

    def function(self, name: str, cls: type[Message], runtime: Mapping[str, object]) -> Any:
        """The function of that name in the text."""
        source = self.source()
        classes = {struct: class_of(cls, struct) for struct in self.table.structs}
        names = {**runtime, **self.constants, **classes}
        exec(compile(source, f"<{self.table.name} v{self.version} {name}>", "exec"), names)
        return names[name]

    def emit(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def enter(self, head: str) -> None:
        self.emit(head)
        self.indent += "    "

    def leave(self) -> None:
        self.indent = self.indent[:-4]

    def name(self, stem: str) -> str:
        """A new name of a variable."""
        self.names += 1
        return f"{stem}_{self.names}"

    def of_struct(self, letters: str, method: str) -> str:
        """The name of a constant: a method of ``struct.Struct`` for these letters."""
        name = f"{method}_{letters.replace('?', 'o')}"
        self.constants[name] = getattr(Struct(">" + letters), method)
        return name
