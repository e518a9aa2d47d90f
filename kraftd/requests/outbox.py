"""The effects of the step that runs, in their order: one outbox a node, shared by all of its parts."""

from __future__ import annotations

from typing import Any

from kraftd.raft.effects import Effect
from kraftd.requests.effects import Say


class Outbox:
    """Collects effects; `take` hands them over at the end of a step."""

    __slots__ = ("effects",)

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    def emit(self, effect: Effect) -> None:
        """Have it performed behind all that was emitted before."""
        self.effects.append(effect)

    def say(self, level: str, text: str, /, **fields: Any) -> None:
        """Have a line logged: `level` is debug, info, warning or error."""
        self.effects.append(Say(level, text, fields))

    def take(self) -> list[Effect]:
        """What was emitted since the last time."""
        taken, self.effects = self.effects, []
        return taken

    def __repr__(self) -> str:
        return f"<Outbox, {len(self.effects)} effects>"
