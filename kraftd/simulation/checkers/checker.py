"""The base of checkers, and the error of a broken invariant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from kraftd.simulation.protocols import World

OnEffect = Callable[[Any, Any], None]  # gets the process and the effect


class Violation(BaseException):
    """An invariant does not hold. `invariant` is its name (S1, L4, and so on), `text` the observation.

    Not an Exception, so that the node's guard does not treat it as a fault of a handler.
    """

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
        self.text = text


class Checker:
    """One group of invariants. Methods that it does not override cost nothing."""

    def __init__(self, world: World) -> None:
        self.world = world

    def effects(self) -> dict[type, OnEffect]:
        """The check before an effect of that type is performed."""
        return {}

    def fail(self, invariant: str, text: str) -> NoReturn:
        raise Violation(invariant, text)
