"""Refusals: an exception that answers a whole request with an error code."""

from __future__ import annotations

from kraftd.wire.error_code import ErrorCode

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
