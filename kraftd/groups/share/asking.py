"""What is asked of share coordinators, and goes on with their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.groups.share.effects import AskShareCoordinators, ShareCoordinatorsAnswered
from kraftd.wire.message import Message

Then = Callable[[Any, int], None]  # takes the answer and the time


class Asking:
    """Questions that are not answered yet; `effects` collects what the broker is to do."""

    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects
        self._waiting: dict[int, Then] = {}
        self._count = 0

    def __repr__(self) -> str:
        return f"<Asking {len(self._waiting)} questions>"

    def ask(self, request: Message, then: Then) -> None:
        """Ask the share coordinators; `then` gets their answer."""
        self._count += 1
        self._waiting[self._count] = then
        self._effects.append(AskShareCoordinators(self._count, request))

    def answered(self, event: ShareCoordinatorsAnswered, now_ms: int) -> None:
        then = self._waiting.pop(event.number, None)
        if then is not None:
            then(event.response, now_ms)
