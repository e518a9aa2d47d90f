"""Random bodies of any request, from the field tables: each field is valid, invalid or absurd."""

from __future__ import annotations

from random import Random
from typing import Any

from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.api import request_class
from kraftd.wire.message import Message
from kraftd.wire.table import FieldRow, MessageTable, StructTable, class_of, table_of, within

_TEXTS = ("", "a", "b", "kafka-cluster", METADATA_TOPIC, "User:alice", "User", "*", "1", "retention.ms", "5")
_ODD_TEXTS = ("\x00", "x" * 300, "ünï 𝄞", ".", "-1", "metadata.version", "kraft.version", "CONTROLLER")
_NUMBERS = (-1, 0, 0, 1, 1, 2, 3, 4, 7, 100, 101, 1000, 4096)
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e300, float("inf"), float("-inf"), float("nan"))
_BYTES = (b"", b"\0", b"salt", bytes(16), bytes(64), b"\xff" * 40)


class WildRequests:
    """Makes random requests. `texts` and `ids` name existing objects, so that some requests get further.

    `most_epoch` is the highest epoch in a request: a controller accepts a higher one, and must.
    """

    def __init__(self, seed: int, texts: tuple[str, ...], ids: tuple[bytes, ...], most_epoch: int) -> None:
        self.random = Random(seed)
        self.texts, self.ids, self.most_epoch = (*texts, *_TEXTS, *_TEXTS, *_ODD_TEXTS), ids, most_epoch

    def __repr__(self) -> str:
        return f"<WildRequests up to epoch {self.most_epoch}>"

    def request(self, key: int, version: int) -> Message:
        """A request that can be encoded in that version."""
        cls = request_class(key)
        table = table_of(cls)
        return self._struct(cls, table, table.root, version)

    def _struct(self, cls: type[Message], table: MessageTable, struct: StructTable, version: int) -> Message:
        message = class_of(cls, struct.name)()
        for row in struct.fields:
            if within(version, row.versions) and self.random.random() > 0.05:
                setattr(message, row.attribute, self._value(cls, table, row, version))
        return message

    def _value(self, cls: type[Message], table: MessageTable, row: FieldRow, version: int) -> Any:
        random = self.random
        if within(version, row.nullable) and random.random() < 0.2:
            return None
        if row.is_primitive():
            if not row.array:
                return self._primitive(row)
            return tuple(self._primitive(row) for _ in range(random.choice((0, 1, 1, 2, 4))))
        inner = table.structs[row.type]
        if not row.array:
            return self._struct(cls, table, inner, version)
        return [self._struct(cls, table, inner, version) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]

    def _primitive(self, row: FieldRow) -> Any:
        random = self.random
        if row.type == "bool":
            return random.random() < 0.5
        if row.type == "float64":
            return random.choice(_FLOATS)
        if row.type == "string":
            return random.choice(self.texts)
        if row.type == "uuid":
            return random.choice((*self.ids, METADATA_TOPIC_ID, bytes(16), b"\x55" * 16))
        if row.type in ("bytes", "records"):
            return random.choice(_BYTES)
        return self._number(row)

    def _number(self, row: FieldRow) -> int:
        random = self.random
        most = (1 << (_BITS[row.type] - 1)) - 1
        number: int = random.choice((*_NUMBERS, most, -most - 1, random.randint(-most, most)))
        if row.type.startswith("uint"):
            return abs(number) & most
        if "epoch" in row.attribute:
            number = min(number, self.most_epoch)
        return max(-most - 1, min(most, number))
