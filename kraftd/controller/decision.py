"""The result of a decision: an answer and the records that make it true, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from kraftd.wire.error_code import ErrorCode
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


MAX_MESSAGE_LENGTH = 2_000


def cut(message: str) -> str:
    """A text for an answer, which may repeat parts of the request, cut to 2,000 characters."""
    return message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 1] + "…"


class Refusal(Exception):
    """Refuses a whole request, with an error code and a text for answers that have a field for it.

    The text is cut at 2,000 characters.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        message = None if message is None else cut(message)
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name
