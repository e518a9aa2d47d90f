"""What all producers have: when they begin, go on, and stop."""

from __future__ import annotations

from typing import Any

from kraftd.simulation.schedule import MS


class Sender:
    """It sends again and again, until something is taken after `wind_down`.

    `is_done`: it has stopped. Subclasses have `_go_on`, the next step.
    """

    def __init__(self, traffic: Any, rng: Any) -> None:
        self.traffic = traffic
        self.world = traffic.world
        self.rng = rng
        self.is_done = False
        self._winds_down = False

    def start(self) -> None:
        self.world.schedule.after(self.rng.between(1, 2_000 * MS), self._go_on)

    def wind_down(self) -> None:
        """Stop after the next of what it sends that is taken."""
        self._winds_down = True

    def _later(self, delay_us: int) -> None:
        self.world.schedule.after(self.rng.between(1, 2 * delay_us), self._go_on)

    def _go_on(self) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{', done' if self.is_done else ''}>"
