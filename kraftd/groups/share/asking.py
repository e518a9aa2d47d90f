"""What is asked of share coordinators and of partitions' leaders, and goes on with their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.groups.share.effects import (
    AskShareCoordinators,
    FindLatestOffsets,
    LatestOffsetsFound,
    Place,
    ShareCoordinatorsAnswered,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

Then = Callable[[Any, int], None]  # takes the answer and the time
Offsets = dict[Place, int | ErrorCode]


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
        self._effects.append(AskShareCoordinators(self._wait(then), request))

    def find_latest(self, places: list[Place], then: Callable[[Offsets, int], None]) -> None:
        """Ask the leaders of partitions; `then` gets the high watermark of each, or an error."""
        self._effects.append(FindLatestOffsets(self._wait(then), places))

    def _wait(self, then: Then) -> int:
        self._count += 1
        self._waiting[self._count] = then
        return self._count

    def answered(self, event: ShareCoordinatorsAnswered | LatestOffsetsFound, now_ms: int) -> None:
        then = self._waiting.pop(event.number, None)
        if then is not None:
            then(event.response if isinstance(event, ShareCoordinatorsAnswered) else event.offsets, now_ms)
