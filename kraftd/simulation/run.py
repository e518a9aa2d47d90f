"""Runs seeds, one or many side by side, and reports their outcomes."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context

from msgspec import Struct, field

from kraftd.simulation.checkers.checker import Violation
from kraftd.simulation.faults.nemesis import Fault
from kraftd.simulation.options import ANY, WorldKind
from kraftd.simulation.schedule import SECOND
from kraftd.simulation.world import World

HOUR_US = 3600 * SECOND


class Outcome(Struct):
    """The outcome of one seed, in a world of whole `controllers` or of consensus cores alone.

    `invariant` is None if all held; `kinds` counts faults, acts and their consequences.
    """

    seed: int
    world: str
    controllers: bool
    kind: WorldKind = ANY
    lost_majority: bool = False
    invariant: str | None = None
    text: str = ""
    steps: int = 0
    effects: int = 0
    simulated_us: int = 0
    settled_us: int = -1
    cpu_s: float = 0.0  # processor time of the seed
    digest: str = ""
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command that runs this seed again."""
        kind = self.kind
        options = " --lost-majority" if self.lost_majority else " --short" if kind.short else ""
        options += " --brokers" if kind.brokers else ""
        options += "".join(f" --load '{load}'" for load in kind.loads)
        return f"kraftd sim{options} --seed {self.seed}"

    @property
    def events(self) -> int:
        """Steps of replicas, and effects of replicas performed."""
        return self.steps + self.effects

    @property
    def failed(self) -> bool:
        return self.invariant is not None

    def __repr__(self) -> str:
        fate = f"{self.invariant}: {self.text}" if self.failed else "all held"
        return f"<Outcome of seed {self.seed}, {self.events} events: {fate}>"


def run_seed(
    seed: int,
    faults: Sequence[Fault] | None = None,
    echo: Callable[[str], None] | None = None,
    kind: WorldKind = ANY,
) -> Outcome:
    """Run one world to its end, or to the first invariant that does not hold."""
    started_s = time.process_time()
    world = World(seed, faults=faults, echo=echo, kind=kind)
    outcome = Outcome(seed, repr(world.options), world.options.controllers, kind)
    try:
        world.run()
    except Violation as violation:
        outcome.invariant, outcome.text = violation.invariant, violation.text
    trace = world.trace
    outcome.steps, outcome.effects, outcome.digest = trace.steps, trace.effects, trace.digest()
    outcome.simulated_us = world.schedule.now_us
    outcome.settled_us = world.liveness.settled_us
    outcome.kinds = dict(trace.kinds)
    world.take_apart()
    outcome.cpu_s = time.process_time() - started_s
    return outcome


def _run_in_a_job(seed: int, run: Callable[[int], Outcome]) -> Outcome:
    started_s = time.process_time()
    gc.disable()  # a world is discarded as a whole
    outcome = run(seed)
    gc.collect()
    outcome.cpu_s = time.process_time() - started_s
    return outcome


def run_seeds(
    first: int,
    count: int,
    jobs: int = 1,
    run_one: Callable[[int], Outcome] = run_seed,
) -> Iterator[Outcome]:
    """Run `count` seeds from `first` on, in as many processes as there are jobs; yields outcomes in order of
    completion.
    """
    seeds, run = range(first, first + count), partial(_run_in_a_job, run=run_one)
    if jobs == 1:
        yield from map(run, seeds)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run, seeds)


class Cost(Struct):
    """The total cost of seeds of one kind of world, with its construction and disposal."""

    seeds: int = 0
    events: int = 0
    cpu_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.events += outcome.events
        self.cpu_s += outcome.cpu_s

    @property
    def events_per_cpu_s(self) -> int:
        return int(self.events / self.cpu_s) if self.cpu_s else 0

    def __repr__(self) -> str:
        return f"<Cost of {self.seeds} seeds, {self.events_per_cpu_s} events a CPU second>"


class Summary:
    """Many outcomes, added up."""

    def __init__(self) -> None:
        self.cores = Cost()
        self.controllers = Cost()
        self.steps = 0
        self.simulated_us = 0
        self.kinds: Counter[str] = Counter()
        self.failures: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        (self.controllers if outcome.controllers else self.cores).add(outcome)
        self.steps += outcome.steps
        self.simulated_us += outcome.simulated_us
        self.kinds.update(outcome.kinds)
        if outcome.failed:
            self.failures.append(outcome)

    @property
    def all(self) -> Cost:
        """Worlds of both kinds together."""
        some, others = self.cores, self.controllers
        return Cost(some.seeds + others.seeds, some.events + others.events, some.cpu_s + others.cpu_s)

    @property
    def hours(self) -> float:
        return self.simulated_us / HOUR_US

    def __repr__(self) -> str:
        return (
            f"<Summary of {self.all.seeds} seeds, {self.hours:.2f} simulated hours, {self.all.events} events "
            f"({self.steps} steps), {self.all.events_per_cpu_s} a CPU second, {len(self.failures)} failed>"
        )
