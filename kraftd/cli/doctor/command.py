"""``kraftd doctor``: the command, which runs the probes and prints their findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import (
    BOOTSTRAP_NAMES,
    DEFAULT_BOOTSTRAP,
    command_config_option,
    json_option,
    run,
)
from kraftd.cli.failures import FAILED, OK
from kraftd.cli.values import SECONDS
from kraftd.cli.wait_notice import waiting

if TYPE_CHECKING:
    from kraftd.cli.doctor.findings import Finding

STYLES = {"problem": "bold red", "warning": "yellow", "note": "dim", "ok": ""}


@click.command()
@command_config_option
@click.option("-c", "--config", "file", metavar="FILE", help="The .properties file of this machine's node.")
@click.option(
    *BOOTSTRAP_NAMES,
    "bootstrap",
    metavar="HOST:PORT,...",
    help="Controllers to ask, or brokers, which name them. Default: the controllers that FILE names, without "
    f"it {DEFAULT_BOOTSTRAP}.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT,...",
    help="Metrics listeners of other kraftd brokers: these say what is full, damaged or slow there.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=5.0,
    show_default=True,
    help="Seconds to wait for an answer of each address.",
)
@json_option
def doctor(
    file: str | None, bootstrap: str | None, metrics: str | None, timeout_s: float, as_json: bool
) -> int:
    """Find what is wrong with a node, its quorum and its brokers.

    The command also says what to do about each problem and each warning.

    With --config the command examines this machine's node, running or not: its file, host names, ports and
    data directories (files, free space, duration of a sync). It takes no lock and changes nothing. A running
    broker names the logs that it cannot clean, if kraftd.metrics.listener is set.

    It asks the quorum which nodes answer, and what the voters, brokers and registered controllers do. It
    reads the metadata for brokers and partitions, and asks the listeners that brokers advertise. Each broker,
    of kraftd or of Apache Kafka, describes its log directories. Of followers that are not in sync it says
    why, since when, and how far they are behind: whether they, their leader or a link is slow. Brokers of
    kraftd whose metrics listeners --metrics names say what takes the time of their fetches. It compares
    clocks, and the features that each node supports. The exit code is 1 if it finds a problem or a warning.
    """
    if file is None and bootstrap is None:
        bootstrap = DEFAULT_BOOTSTRAP
    found = run(examined(file, bootstrap, metrics, timeout_s))
    if as_json:
        import json

        for one in found:
            click.echo(json.dumps(one._asdict()))
    else:
        show(found)
    return FAILED if any(one.is_wrong for one in found) else OK


async def examined(
    file: str | None, bootstrap: str | None, metrics: str | None, timeout_s: float
) -> list[Finding]:
    """All findings."""
    from kraftd.cli.doctor.examine import examine

    async with waiting(f"for addresses that do not answer; each has {timeout_s:g} s"):
        return await examine(file, bootstrap, metrics, timeout_s)


def show(found: Iterable[Finding]) -> None:
    """A table, the worst first, and a line that counts."""
    from kraftd.cli.tables import print_table

    order = tuple(STYLES)
    rows = sorted(found, key=lambda one: order.index(one.level))
    print_table(
        ("LEVEL", "AREA", "WHERE", "FINDING", "REMEDY"),
        [(one.level, one.area, one.subject, one.text, one.remedy) for one in rows],
        [STYLES[one.level] for one in rows],
        wrap=True,
    )
    counts = [(level, sum(one.level == level for one in rows)) for level in order]
    click.echo("Found: " + ", ".join(f"{level} {count}" for level, count in counts))
