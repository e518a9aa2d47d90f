"""Drives the consensus core, and passes each effect to the part of the node that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kraftd.controller.context import Context
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.raft.core import RaftCore
from kraftd.replica.fatal_faults import FATAL, HalfChanged
from kraftd.requests.outbox import Outbox

TakeIn = Callable[[Any], None]


class CoreDriver:
    """Steps the core. Effects of the kinds in `takers` stay in the node; the runtime performs all others."""

    __slots__ = ("_context", "_outbox", "core", "takers")

    def __init__(self, core: RaftCore, context: Context, outbox: Outbox) -> None:
        self.core = core
        self.takers: dict[type[Effect], TakeIn] = {}
        self._context = context
        self._outbox = outbox

    @property
    def now_ms(self) -> int:
        """The time of this step."""
        return self._context.now_ms

    def step(self, event: Event) -> list[Effect]:
        """Step the core with an event; the caller must `perform` the effects."""
        return self.core.step(event, self._context.now_ms)

    def deliver(self, event: Event) -> None:
        """Step the core with an event, and perform the effects."""
        self.perform(self.core.step(event, self._context.now_ms))

    def perform(self, effects: Sequence[Effect]) -> None:
        """Handle the core's effects that concern the node, and pass on the rest.

        Raises HalfChanged for a fault on the way: the later effects would be lost.
        """
        takers, emitted = self.takers, self._outbox
        try:
            for effect in effects:
                taker = takers.get(type(effect))
                if taker is None:
                    emitted.effects.append(effect)
                else:
                    taker(effect)
        except FATAL:
            raise
        except Exception as error:
            raise HalfChanged(f"effects of the consensus core were not performed: {error!r}") from error

    def __repr__(self) -> str:
        return f"<CoreDriver of {self.core!r}>"
