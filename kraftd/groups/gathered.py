"""The parts of an answer that several shards give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Gathered(Generic[T]):
    """Parts by their numbers; once all have come, `finish` gets them in order."""

    __slots__ = ("_finish", "_missing", "_parts")

    def __init__(self, count: int, finish: Callable[[list[T]], None]) -> None:
        self._parts: list[T | None] = [None] * count
        self._missing = count
        self._finish = finish

    def __repr__(self) -> str:
        return f"<Gathered {len(self._parts) - self._missing} of {len(self._parts)}>"

    def put(self, number: int, part: T) -> None:
        if self._parts[number] is None:
            self._missing -= 1
        self._parts[number] = part
        if not self._missing:
            self._finish([part for part in self._parts if part is not None])
