"""Errors between a message and its bytes."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class ProtocolError(ValueError):
    """The bytes are not the expected message.

    ``message`` is the name of the message that was read, ``field`` the path of the field in it
    (``topics[2].partitions``; empty for the message as a whole), ``offset`` the byte in what was
    given to decode, ``reason`` what is wrong there.
    """

    def __init__(self, message: str, field: str, offset: int, reason: str) -> None:
        self.message = message
        self.field = field
        self.offset = offset
        self.reason = reason
        where = f"{message}.{field}" if field else message
        super().__init__(f"{where} at byte {offset}: {reason}")


class EncodeError(ValueError):
    """A value that cannot be written: ``message``, ``field`` (its path) and ``reason`` say which and why."""

    def __init__(self, message: str, field: str, reason: str) -> None:
        self.message = message
        self.field = field
        self.reason = reason
        super().__init__(f"{message}.{field}: {reason}" if field else f"{message}: {reason}")


class UnsupportedFieldError(EncodeError):
    """A value other than the default in a field that the version does not have (and may not drop)."""


class UnsupportedVersionError(ValueError):
    """A version that a message does not have, or a message that is not known; ``valid`` are those it has."""

    def __init__(self, message: str, version: int, valid: tuple[int, int]) -> None:
        self.message = message
        self.version = version
        self.valid = valid
        super().__init__(f"{message} has versions {valid[0]} to {valid[1]}, not {version}")


class DamagedRecords(ValueError):
    """The records of a batch do not fit their header or each other; the text says which one."""


def without_frames(error: E) -> E:
    """The exception and those behind it, without tracebacks.

    A traceback holds the frames of all its callers with what they hold, such as the result that is the
    exception itself: then nothing of it is freed.
    """
    behind: list[BaseException | None] = [error]
    while behind:
        one = behind.pop()
        if one is not None and one.__traceback__ is not None:
            one.__traceback__ = None
            behind += [one.__cause__, one.__context__]
    return error
