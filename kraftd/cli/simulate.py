"""``kraftd sim``: quorums of controllers in simulated worlds, under every kind of fault."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kraftd.cli.failures import FAILED, OK

if TYPE_CHECKING:
    from kraftd.simulation.options import WorldKind
    from kraftd.simulation.run import Outcome, Summary

LOADS = ("compaction", "consumer groups", "share groups")  # the simulator's, without its imports


@click.command("sim")
@click.option("--seed", type=int, help="Run only this seed.")
@click.option(
    "--seeds", type=click.IntRange(1), default=100, show_default=True, help="How many seeds to run."
)
@click.option("--first", type=int, default=0, show_default=True, help="The first of the --seeds.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many processes run the --seeds."
)
@click.option(
    "--short", is_flag=True, help="Run worlds of a quarter of the time, with as many faults per second."
)
@click.option(
    "--brokers", is_flag=True, help="Run worlds in which some nodes are brokers, with producers and groups."
)
@click.option(
    "--load",
    "loads",
    multiple=True,
    type=click.Choice(LOADS),
    help="With --brokers: a load of every world, instead of those that it draws. It may be repeated.",
)
@click.option(
    "--lost-majority",
    is_flag=True,
    help="Run worlds that lose a majority of the voters for good, and recover.",
)
@click.option("--trace", is_flag=True, help="With --seed: print every event.")
@click.option(
    "--shrink/--no-shrink",
    default=True,
    show_default=True,
    help="Search for the fewest faults with which a seed still fails.",
)
def sim(
    seed: int | None,
    seeds: int,
    first: int,
    jobs: int,
    short: bool,
    brokers: bool,
    loads: tuple[str, ...],
    lost_majority: bool,
    trace: bool,
    shrink: bool,
) -> int:
    """Run quorums through simulated faults, and check invariants.

    A seed is one world: its network, disks, clocks, faults and clients follow from the number. So every run
    of a seed is identical. With --short a seed is another, shorter world, and with
    --brokers one with brokers.

    For each seed that fails, the command prints the seed and the broken invariant. For the first of them it
    also prints the fewest faults that still break it. Run such a seed again with --seed (and its options);
    --trace prints its events.

    Exit codes: 0 every invariant held, 1 an invariant was broken, 2 the command line is wrong.
    """
    if lost_majority and (short or brokers):
        raise click.UsageError("--lost-majority worlds are of one kind: leave --short and --brokers out.")
    if loads and not brokers:
        raise click.UsageError("--load is of worlds with brokers: add --brokers.")
    from kraftd.simulation.options import WorldKind

    kind = None if lost_majority else WorldKind(short, brokers, tuple(sorted(set(loads))))
    if seed is not None:
        given = click.get_current_context().get_parameter_source
        for several in ("seeds", "first", "jobs"):
            if given(several) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--seed runs one world: leave --{several} out, or --seed.")
        return _one(seed, kind, trace, shrink)
    if trace:
        raise click.UsageError("--trace is for one seed: give --seed.")
    return _many(first, seeds, jobs, kind, shrink)


def _one(seed: int, kind: WorldKind | None, trace: bool, shrink: bool) -> int:
    """Run a seed; without a kind, of a world that loses its majority."""
    from kraftd.simulation.lost_majority import run_lost_majority
    from kraftd.simulation.run import run_seed

    echo = click.echo if trace else None
    outcome = run_lost_majority(seed, echo) if kind is None else run_seed(seed, echo=echo, kind=kind)
    click.echo(f"Seed {seed}: {outcome.world}")
    click.echo(
        f"Events: {outcome.events}, simulated: {outcome.simulated_us / 1e6:.1f} s, digest: {outcome.digest}"
    )
    if not outcome.failed:
        click.echo("Every invariant held.")
        return OK
    _show(outcome, shrink and not trace)
    return FAILED


def _many(first: int, count: int, jobs: int, kind: WorldKind | None, shrink: bool) -> int:
    import time

    from kraftd.simulation.lost_majority import run_lost_majority
    from kraftd.simulation.run import Summary, run_seed, run_seeds

    summary = Summary()
    started_s = time.monotonic()
    run_one = run_lost_majority if kind is None else partial(run_seed, kind=kind)
    for outcome in run_seeds(first, count, jobs, run_one):
        summary.add(outcome)
        if outcome.failed:
            _show(outcome, shrink and len(summary.failures) == 1)
    _sum_up(summary, time.monotonic() - started_s)
    return FAILED if summary.failures else OK


def _show(outcome: Outcome, shrink: bool) -> None:
    click.echo(f"FAILED seed {outcome.seed}: {outcome.invariant}: {outcome.text}")
    click.echo(f"  {outcome.world}")
    if shrink and not outcome.lost_majority:
        from kraftd.simulation.shrink import planned
        from kraftd.simulation.shrink import shrink as shrunk

        plan = planned(outcome)
        faults = shrunk(outcome)
        click.echo(f"  {len(faults)} of its {len(plan)} planned faults are enough:")
        for fault in faults:
            click.echo(f"    {fault!r}")
    click.echo(f"  {outcome.command} --trace")


def _sum_up(summary: Summary, elapsed_s: float) -> None:
    click.echo(
        f"Seeds: {summary.all.seeds}, failed: {len(summary.failures)}, simulated: {summary.hours:.2f} h, "
        f"in {elapsed_s:.0f} s"
    )
    click.echo(f"Events: {summary.all.events} ({summary.steps} steps and their effects)")
    for kind, cost in (("consensus cores", summary.cores), ("whole controllers", summary.controllers)):
        if cost.seeds:
            click.echo(
                f"  {cost.seeds} worlds of {kind}: {cost.events_per_cpu_s} events a second of CPU, "
                f"{cost.cpu_s / cost.seeds:.2f} s a world"
            )
    click.echo("What happened, and how often:")
    for kind, times in sorted(summary.kinds.items()):
        click.echo(f"  {times:>9} {kind}")
