"""The codec engine in pure Python: straight-line functions, built from the tables on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kraftd.wire.errors import UnsupportedVersionError
from kraftd.wire.message import Message
from kraftd.wire.python_decoder import Decoder, build_decoder
from kraftd.wire.python_encoder import Encoder, build_encoder
from kraftd.wire.table import MessageTable, table_of

Function = TypeVar("Function")
Build = Callable[[MessageTable, type[Message], int], Function]


class Versions(dict[int, Function], Generic[Function]):
    """Version -> function of one message; UnsupportedVersionError for one that it does not have."""

    def __init__(self, cls: type[Message], build: Build[Function]) -> None:
        self.cls = cls
        self.table = table_of(cls)
        self.has_records = self.table.has_records()
        self.build = build

    def __missing__(self, version: int) -> Function:
        first, last = self.table.valid
        if not first <= version <= last:
            raise UnsupportedVersionError(self.table.name, version, self.table.valid)
        function = self[version] = self.build(self.table, self.cls, version)
        return function


class Functions(dict[type[Message], Versions[Function]], Generic[Function]):
    """Class of a message -> its functions; TypeError for a class that is none."""

    def __init__(self, build: Build[Function]) -> None:
        self.build = build

    def __missing__(self, cls: type[Message]) -> Versions[Function]:
        functions = self[cls] = Versions(cls, self.build)
        return functions


DECODERS: Functions[Decoder] = Functions(build_decoder)
ENCODERS: Functions[Encoder] = Functions(build_encoder)
