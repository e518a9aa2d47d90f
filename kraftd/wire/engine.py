"""The choice between two engines that turn messages into bytes and back, with equal results and errors.

``c`` is built if kraftd is installed with a C compiler, and is then preferred; ``python`` always exists.
``KRAFTD_CODEC`` in the environment, read at import, demands one of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from importlib import import_module
from typing import Protocol, cast

from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer


class Repeated(IntEnum):
    """What becomes of elements that are not decoded and have the same bytes in the copied field."""

    KEPT = 0  # a row for each
    DECODED = 1  # no rows: the message has to be decoded
    DROPPED = 2  # one row, at the first place


class CEngine(Protocol):
    """The functions of ``_engine.c`` beside those of ``kraftd.wire.codec``."""

    def encode_record(self, record: tuple[Message, int], /) -> bytes:
        """A metadata record and its version as the value of a log record."""

    def encode_records(self, records: Sequence[tuple[Message, int]], /) -> list[bytes]:
        """As `encode_record`, for each of several records."""

    def batch_values(self, view: memoryview, /) -> list[memoryview] | None:
        """Views of the values of a metadata batch; None for a batch of an unusual form."""

    def batch_messages(
        self, view: memoryview, at: int, number: int, most: int, /
    ) -> tuple[list[Message], int] | None:
        """The messages of up to `most` records of a metadata batch, and the byte after them. The first is the
        record of index `number`, at byte `at` (0: after the header). None for a batch of an unusual form.
        """

    def suspect_records(
        self, batches: Buffer, kinds: bytes, harmless_configs: frozenset[bytes], /
    ) -> list[tuple[int, list[int] | None]]:
        """The positions of batches with records that may hold a secret, and the places of those records in
        their batch, six numbers for each; None for a batch of an unusual form. `kinds` says at a record's key
        what is known of its type.
        """

    def rows_of_unread(
        self,
        cls: type[Message],
        version: int,
        view: Buffer,
        offset: int,
        elements: tuple[str, ...],
        copied: str,
        checked: str,
        value: bytes,
        repeated: int,
        prefix: bytes,
        suffix: bytes,
        inner: str,
        inner_copied: str,
        inner_suffix: bytes,
        max_elements: int,
        /,
    ) -> tuple[int, bytes, int] | None:
        """The number of elements in arrays of a message, and for each a row of an answer: `prefix`, the
        bytes of the element's field `copied`, `suffix`. No element is decoded, and other threads run.
        With `inner`, an array in the only array, its rows come before the suffix: their number, and for each
        the bytes of the field `inner_copied` and `inner_suffix`. The last number is that of all inner rows.

        `elements` are arrays of structs, or of strings, which are then copied themselves. If `copied` is
        empty, the rows of structs are alike. None if anything is unusual, so that the message has to be
        decoded: a malformed message, a copied field that is null, a field `checked` (if not empty) with
        other bytes than `value`, no element or more than `max_elements`. `repeated` is a `Repeated`. If
        there are no `elements`, no rows: then (0, b"", 0) says that the message is well-formed.
        """

    def build_batch(
        self,
        values: Sequence[bytes],
        base_offset: int,
        leader_epoch: int,
        timestamp_ms: int,
        crc32c: Callable[[memoryview], int],
        /,
    ) -> bytes:
        """The metadata batch of some values."""


def find_c_engine(wanted: str) -> CEngine | None:
    """The C engine; None if Python is used; ImportError if the demanded one does not exist."""
    if wanted not in ("", "c", "python"):
        raise ImportError(f"KRAFTD_CODEC={wanted}: there is no such codec engine, only c and python")
    if wanted == "python":
        return None
    try:
        return cast("CEngine", import_module("kraftd.wire._engine"))
    except ImportError as error:
        if wanted:
            raise ImportError(f"KRAFTD_CODEC=c: the C engine cannot be loaded: {error}") from None
        return None


C_ENGINE = find_c_engine(os.environ.get("KRAFTD_CODEC", ""))


def engine_name() -> str:
    """The engine in use: c or python."""
    return "python" if C_ENGINE is None else "c"
