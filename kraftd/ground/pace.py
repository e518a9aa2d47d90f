"""Long work in slices, one for each event loop callback, written as generators that pause between slices.

A call of such a function does all work at once. Its ``begin`` returns the generator, which returns the same.
The image must not change between slices. Short work never pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Slices = Generator[None, None, R]

ROW_US = 1  # of work: a row of an answer
MAX_SLICE_WORK_US = 2_500  # about, on a current machine; a loaded one may need twice as many


class Pace:
    """Adds up the work of a slice: ``if pace.spent(microseconds): yield``."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_SLICE_WORK_US

    def spent(self, work: int) -> bool:
        """Return whether the work of a slice is done; then the next slice begins."""
        self._left -= work
        if self._left > 0:
            return False
        self._left = MAX_SLICE_WORK_US
        return True

    def __repr__(self) -> str:
        return f"<Pace, {self._left} left>"


class Sliced(Generic[P, R]):
    """A generator function that can also be called like any other."""

    def __init__(self, begin: Callable[P, Slices[R]]) -> None:
        self.begin = begin
        update_wrapper(self, begin)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return at_once(self.begin(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<Sliced {self.begin.__qualname__}>"


def at_once(slices: Slices[R]) -> R:
    """The result of all slices, run at once."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: R = end.value
            return result
