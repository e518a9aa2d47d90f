"""The refused elements of a request, as rows of its answer that are encoded before the answer is known.

A request may name a million elements, nearly all of which are refused before anything is decided. Their rows
are encoded a few at a time; the answer to the other elements is later put before them.
"""

from __future__ import annotations

from collections import Counter

from kraftd.requests.call import Call
from kraftd.wire.message import Message
from kraftd.wire.slices import EncodedRows

ROWS_AT_ONCE = 500
ROW_US = 2  # microseconds, for the pace: to make and encode a row


class RefusedRows:
    """Rows of one list of the answer to a call. `codes` counts their errors."""

    __slots__ = ("_place", "_rows", "codes", "encoded")

    def __init__(self, call: Call, response: type[Message], field: str) -> None:
        self.codes: Counter[int] = Counter()
        self.encoded: EncodedRows | None = None
        self._place = response, field, call.version
        self._rows: list[Message] = []

    def add(self, row: Message) -> None:
        """Add a row, which has an error code."""
        self.codes[int(row.error_code)] += 1  # type: ignore[attr-defined]
        rows = self._rows
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            self.end()

    def end(self) -> None:
        """Encode the last rows."""
        if self._rows:
            if self.encoded is None:
                self.encoded = EncodedRows(*self._place)
            self.encoded.add(self._rows)
            self._rows = []

    def __bool__(self) -> bool:
        return bool(self.codes)

    def __repr__(self) -> str:
        return f"<RefusedRows {self.codes.total()}>"
