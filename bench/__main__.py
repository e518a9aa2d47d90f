"""``python -m bench``: measure kraftd and Apache Kafka's controller in turn, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.acls import acls
from bench.admin import admin
from bench.clients import clients
from bench.codec import codecs
from bench.compaction import compaction
from bench.coordinators import coordinators
from bench.failover import failovers
from bench.figures import FIGURES, Figures
from bench.measure import MEASUREMENTS as OF_ONE
from bench.measure import QUICK, Plan
from bench.plots import draw, remember
from bench.quorum import three_controllers
from bench.replication import MEASUREMENTS as OF_REPLICATION
from bench.scale import scale
from bench.whole import whole
from testkit.fetch import KAFKA_VERSION
from testkit.node import Kind

PLOTS = Path(__file__).with_name("plots")
RESULTS = Path(__file__).with_name("results")
MEASUREMENTS = {
    **OF_ONE,
    "admin": admin,
    "acls": acls,
    "quorum": three_controllers,
    "failover": failovers,
    "scale": scale,
    "clients": clients,
    "whole": whole,
    "coordinators": coordinators,
    "compaction": compaction,
    **OF_REPLICATION,
    "codec": codecs,
}


def table(kraftd: Figures, kafka: Figures) -> Table:
    shown = Table(title="Controllers, kraftd beside Apache Kafka")
    for column in ("", "kraftd", f"Kafka {KAFKA_VERSION}", "times better", "aim"):
        shown.add_column(column, justify="left" if not column else "right")
    for key, figure in FIGURES.items():
        if key in kraftd or key in kafka:
            cells = [figure.written(side[key]) if key in side else "-" for side in (kraftd, kafka)]
            times = figure.times_better(kraftd[key], kafka[key]) if key in kraftd and key in kafka else None
            shown.add_row(figure.name, *cells, "-" if times is None else f"{times:.1f}x", figure.aim)
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="less of everything: a minute or two, rough figures"
    )
    parser.add_argument(
        "--only", choices=sorted(MEASUREMENTS), action="append", help="just these measurements"
    )
    parser.add_argument("--controller", choices=["kraftd", "apache"], help="just this one; no ratios")
    parser.add_argument("--partitions", type=int, help="of replication-many: a multiple of 1,000")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    if options.partitions:
        plan = replace(plan, partitions=options.partitions)
    kinds: list[Kind] = [options.controller] if options.controller else ["kraftd", "apache"]
    figures: dict[str, Figures] = {"kraftd": {}, "apache": {}}
    console, began = Console(highlight=False, width=None if sys.stdout.isatty() else 120), time.time()
    RESULTS.mkdir(exist_ok=True)
    written = RESULTS / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(began))}.json"
    loads: dict[str, tuple[float, float, float]] = {}
    for name in options.only or MEASUREMENTS:
        # Each measurement of both sides before the next: other load on the machine then affects both alike.
        for kind in kinds:
            with console.status(f"{name}: {kind}"):
                figures[kind] |= MEASUREMENTS[name](kind, plan)
            loads[f"{name}: {kind}"] = os.getloadavg()
            report = {
                "kafka": KAFKA_VERSION,
                "python": platform.python_version(),
                "cores": os.cpu_count(),
                "load_average": loads,
                "quick": options.quick,
                "seconds": round(time.time() - began),
                **figures,
            }
            written.write_text(json.dumps(report, indent=2) + "\n")  # so far, as the rest may take long
    console.print(table(figures["kraftd"], figures["apache"]))
    plots = RESULTS if options.quick else PLOTS
    drawn = draw(remember(report, plots), plots) if len(kinds) == 2 else []
    console.print(f"plots: {', '.join(map(str, drawn))}" if drawn else "no plots of one side alone")
    console.print(
        f"written to {written.relative_to(Path.cwd()) if written.is_relative_to(Path.cwd()) else written}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
