"""The result of a decision: an answer and the records that make it true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from kraftd.ground.pace import Slices
from kraftd.wire.record_frame import VersionedRecord

A = TypeVar("A")


class Decision(Struct, Generic[A], gc=False):
    """The answer to send once the records are committed. Nothing has changed yet.

    atomic: the records go into one batch, all or nothing. after: changes soft state once the records are
    appended (at once, if there are none); it is called on the leader only, with the offset after the last of
    them. seen_offset: the last record that an answer without records reflects; None if it may reflect any.
    """

    answer: A
    records: list[VersionedRecord] = []
    atomic: bool = True
    after: Callable[[int], None] | None = None
    seen_offset: int | None = None

    def __repr__(self) -> str:
        kinds = ", ".join(type(record.message).__name__ for record in self.records[:4])
        more = ", …" if len(self.records) > 4 else ""
        return f"<Decision {len(self.records)} records [{kinds}{more}] answer {self.answer!r}>"


Deciding = Slices[Decision[Any]]
