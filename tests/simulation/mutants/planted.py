"""The expectation for a planted defect: which checker notices it, in what kind of world."""

from __future__ import annotations

from typing import Any

from kraftd.simulation.checkers.checker import Violation
from kraftd.simulation.options import draw_options
from kraftd.simulation.schedule import SECOND
from kraftd.simulation.world import World

FAST = (50, 500)  # syncs, in microseconds
MOST_US = 25 * SECOND


class Planted:
    """`noticed_by` are the invariants one of which must break first; `world` replaces drawn options."""

    def __init__(self, *noticed_by: str, **world: Any) -> None:
        self.noticed_by = noticed_by
        self.world = world
        faults = world.get("faults")
        if faults is not None:
            world["faults"] = (*faults, "restart", "heal", "make room")

    def run(self, seed: int) -> Violation | None:
        """The first violation in this seed's world; None if all invariants hold."""
        options = draw_options(seed)
        options = options._replace(safety_us=min(options.safety_us, MOST_US))._replace(**self.world)
        world = World(seed, options=options)
        try:
            world.run()
        except Violation as violation:
            return Violation(violation.invariant, violation.text)
        finally:
            world.take_apart()
        return None

    def __repr__(self) -> str:
        return f"<Planted for {' or '.join(self.noticed_by)} in {self.world}>"
