"""What a checker is, and what a broken invariant is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from kraftd.simulation.surroundings import World

OnEffect = Callable[[Any, Any], None]  # of the process, and the effect


class Violation(BaseException):
    """An invariant does not hold. `invariant` is its name (S1, L4, and so on), `text` what was seen.

    Not an Exception: the node's guard of its handlers must not take it for a fault of theirs.
    """

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
        self.text = text


class Checker:
    """One group of invariants. What it does not override costs nothing."""

    def __init__(self, world: World) -> None:
        self.world = world

    def effects(self) -> dict[type, OnEffect]:
        """What to look at before an effect of that type is performed."""
        return {}

    def fail(self, invariant: str, text: str) -> NoReturn:
        raise Violation(invariant, text)
