"""The effects of the current step, in order: one outbox for a node, shared by all of its parts."""

from __future__ import annotations

from typing import Any

from kraftd.ground.effect import Effect
from kraftd.requests.effects import LogLine


class Outbox:
    """Collects effects; `take` hands them over at the end of a step."""

    __slots__ = ("effects",)

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    def emit(self, effect: Effect) -> None:
        """Add an effect after all earlier ones."""
        self.effects.append(effect)

    def log(self, level: str, text: str, /, **fields: Any) -> None:
        """Add a line for the log: `level` is debug, info, warning or error."""
        self.effects.append(LogLine(level, text, fields))

    def take(self) -> list[Effect]:
        """Remove and return the effects since the last call."""
        taken, self.effects = self.effects, []
        return taken

    def __repr__(self) -> str:
        return f"<Outbox, {len(self.effects)} effects>"
