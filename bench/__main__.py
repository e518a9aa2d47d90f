"""``python -m bench``: measure kraftd and Apache Kafka's controller in turn, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.failover import failovers
from bench.measure import MEASUREMENTS as OF_ONE
from bench.measure import QUICK, Figures, Plan
from bench.quorum import three_controllers
from bench.scale import scale
from tests.kafka.fetch import KAFKA_VERSION

RESULTS = Path(__file__).with_name("results")
MEASUREMENTS = {**OF_ONE, "quorum": three_controllers, "failover": failovers, "scale": scale}


@dataclass(frozen=True)
class Figure:
    """One row of the table: how it is written, which way is better, and the ratio that is aimed at."""

    name: str
    unit: str
    digits: int
    aim: str
    more_is_better: bool = False

    def ratio(self, kraftd: float, kafka: float) -> str:
        """How many times better kraftd is, above 1, or worse, below."""
        better, worse = (kraftd, kafka) if self.more_is_better else (kafka, kraftd)
        return f"{better / worse:.1f}x" if worse else "-"


FIGURES = {
    "start_wall_ms": Figure("cold start to first ApiVersions, wall", "ms", 0, "6x"),
    "start_cpu_ms": Figure("cold start to first ApiVersions, CPU", "ms", 0, "10x"),
    "idle_rss_mib": Figure("idle, resident memory", "MiB", 0, "3x"),
    "idle_cpu_percent": Figure("idle, CPU", "% of a core", 2, "2x"),
    "create_p50_ms": Figure("CreateTopics of one topic, p50", "ms", 2, "8x"),
    "create_p99_ms": Figure("CreateTopics of one topic, p99", "ms", 2, "4x"),
    "create_no_linger_p50_ms": Figure("the same, append linger 0, p50", "ms", 2, "2x"),
    "create_no_linger_p99_ms": Figure("the same, append linger 0, p99", "ms", 2, ""),
    "create_1000_topics_ms": Figure("one request of 1,000 topics", "ms", 0, "3x"),
    "heartbeats_per_cpu_s": Figure("BrokerHeartbeats per CPU second", "", 0, "2x", True),
    "heartbeats_per_s": Figure("BrokerHeartbeats per second", "", 0, "", True),
    "empty_fetches_per_cpu_s": Figure("empty fetches per CPU second", "", 0, "2x", True),
    "empty_fetches_per_s": Figure("empty fetches per second", "", 0, "", True),
    "three_propagation_p50_ms": Figure("3 controllers: create sent to seen on a broker, p50", "ms", 1, "6x"),
    "three_create_p50_ms": Figure("3 controllers: CreateTopics, p50", "ms", 2, "6x"),
    "three_create_p99_ms": Figure("3 controllers: CreateTopics, p99", "ms", 2, "4x"),
    "three_create_no_linger_p50_ms": Figure("3 controllers: the same, append linger 0, p50", "ms", 2, "2x"),
    "three_create_1000_topics_ms": Figure("3 controllers: one request of 1,000 topics", "ms", 0, "3x"),
    "three_creates_per_s": Figure("3 controllers: creates per second, 50 clients", "", 0, "5x", True),
    "three_idle_cpu_percent": Figure("3 controllers: idle, CPU of all", "% of a core", 2, "2x"),
    "failover_killed_p50_ms": Figure("leader killed, to the next leader, p50", "ms", 0, "10x"),
    "failover_killed_max_ms": Figure("leader killed, the worst", "ms", 0, ""),
    "failover_frozen_p50_ms": Figure("leader's host lost, to the next leader, p50", "ms", 0, ""),
    "failover_frozen_max_ms": Figure("leader's host lost, the worst", "ms", 0, ""),
    "failover_stopped_p50_ms": Figure("leader told to stop, to the next leader, p50", "ms", 0, ""),
    "failover_stopped_max_ms": Figure("leader told to stop, the worst", "ms", 0, ""),
    "scale_partitions_per_s": Figure("scale: partitions created per second", "", 0, "1x", True),
    "scale_create_cpu_us": Figure("scale: CPU of a partition created", "us", 1, ""),
    "scale_create_p50_at_0_ms": Figure("scale: CreateTopics, p50, no partition", "ms", 2, ""),
    "scale_create_p50_at_tenth_ms": Figure("scale: the same, a tenth of all partitions", "ms", 2, ""),
    "scale_create_p50_at_all_ms": Figure("scale: the same, all partitions", "ms", 2, ""),
    "scale_rss_mib": Figure("scale: resident memory after the creates", "MiB", 0, "3x"),
    "scale_log_answers_s": Figure("scale: restart from the log, ApiVersions answered", "s", 2, ""),
    "scale_log_slowest_answer_ms": Figure("scale: the slowest ApiVersions while it loads", "ms", 0, ""),
    "scale_log_serves_s": Figure("scale: restart from the log until it serves, wall", "s", 2, "4x"),
    "scale_log_serves_cpu_s": Figure("scale: the same, CPU", "s", 2, "5x"),
    "scale_log_rss_mib": Figure("scale: the same, resident memory", "MiB", 0, "3x"),
    "scale_checkpoint_s": Figure("scale: a checkpoint written, wall", "s", 2, ""),
    "scale_checkpoint_cpu_s": Figure("scale: the same, CPU of all processes", "s", 2, "0.5x"),
    "scale_checkpoint_mib": Figure("scale: the checkpoint", "MiB", 1, ""),
    "scale_checkpoint_answers_s": Figure("scale: restart from it, ApiVersions answered", "s", 2, ""),
    "scale_checkpoint_slowest_answer_ms": Figure(
        "scale: the slowest ApiVersions while it loads", "ms", 0, ""
    ),
    "scale_checkpoint_serves_s": Figure("scale: restart from it until it serves, wall", "s", 2, "4x"),
    "scale_checkpoint_serves_cpu_s": Figure("scale: the same, CPU", "s", 2, "5x"),
    "scale_checkpoint_rss_mib": Figure("scale: the same, resident memory", "MiB", 0, "3x"),
    "scale_fence_ms": Figure("scale: a silent broker fenced, to the last record committed", "ms", 0, "2x"),
    "scale_fence_records": Figure("scale: partitions changed", "", 0, ""),
    "scale_fence_heartbeat_p50_ms": Figure("scale: heartbeats meanwhile, p50", "ms", 2, ""),
    "scale_fence_heartbeat_p99_ms": Figure("scale: heartbeats meanwhile, p99", "ms", 2, ""),
    "scale_fence_heartbeat_max_ms": Figure("scale: heartbeats meanwhile, the worst", "ms", 1, ""),
    "scale_shutdown_ms": Figure("scale: a broker shut down, to the last record committed", "ms", 0, ""),
    "scale_shutdown_records": Figure("scale: partitions changed", "", 0, ""),
    "scale_shutdown_heartbeat_p50_ms": Figure("scale: heartbeats meanwhile, p50", "ms", 2, ""),
    "scale_shutdown_heartbeat_p99_ms": Figure("scale: heartbeats meanwhile, p99", "ms", 2, ""),
    "scale_shutdown_heartbeat_max_ms": Figure("scale: heartbeats meanwhile, the worst", "ms", 1, ""),
    "scale_bring_up_mb_s": Figure("scale: a snapshot fetched by a new controller", "MB/s", 0, "", True),
    "scale_stalls": Figure("scale: loop stalls over 10 ms", "", 0, ""),
    "scale_longest_hold_ms": Figure("scale: the longest", "ms", 1, ""),
}


def table(kraftd: Figures, kafka: Figures) -> Table:
    shown = Table(title="Controllers, kraftd beside Apache Kafka")
    for column in ("", "kraftd", f"Kafka {KAFKA_VERSION}", "times better", "aim"):
        shown.add_column(column, justify="left" if not column else "right")
    for key, figure in FIGURES.items():
        if key in kraftd or key in kafka:
            cells = [
                f"{side[key]:,.{figure.digits}f} {figure.unit}".strip() if key in side else "-"
                for side in (kraftd, kafka)
            ]
            both = key in kraftd and key in kafka
            shown.add_row(
                figure.name, *cells, figure.ratio(kraftd[key], kafka[key]) if both else "-", figure.aim
            )
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
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    kinds = [options.controller] if options.controller else ["kraftd", "apache"]
    figures: dict[str, Figures] = {"kraftd": {}, "apache": {}}
    console, began = Console(highlight=False, width=None if sys.stdout.isatty() else 120), time.time()
    for name in options.only or MEASUREMENTS:
        # One measurement, both sides, before the next: what the machine does meanwhile meets both alike.
        for kind in kinds:
            with console.status(f"{name}: {kind}"):
                figures[kind] |= MEASUREMENTS[name](kind, plan)
    console.print(table(figures["kraftd"], figures["apache"]))
    RESULTS.mkdir(exist_ok=True)
    written = RESULTS / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(began))}.json"
    report = {
        "kafka": KAFKA_VERSION,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "quick": options.quick,
        "seconds": round(time.time() - began),
        **figures,
    }
    written.write_text(json.dumps(report, indent=2) + "\n")
    console.print(
        f"written to {written.relative_to(Path.cwd()) if written.is_relative_to(Path.cwd()) else written}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
