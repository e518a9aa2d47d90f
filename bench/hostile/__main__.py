"""Attack three kraftd nodes and three Apache Kafka controllers, measure what others notice, print a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.hostile.others import BROKERS, Others
from bench.hostile.plot import draw, remember
from bench.hostile.quorum import HOSTILE_HOST, Attacked, attacked
from bench.hostile.rows import ROWS, Attacker
from bench.measure import percentile
from testkit.fetch import KAFKA_VERSION
from testkit.node import Kind

BENCH = Path(__file__).parents[1]
RESULTS, PLOTS = BENCH / "results", BENCH / "plots"
ACLS = 100_000
# Rows of what Apache Kafka's controllers do not have; its brokers answer InitProducerId.
OF_KRAFTD = ("InitProducerId", "scrapes")
BY_BROKER = "-by-broker"
# Rows whose number of connections is their own.
OF_ONE_SIZE = ("nothing", "handshakes", "scrapes", "half-open", "mixed")
POLL_S = 0.2
FOREVER_S = 3_600
NO_LEADER = "none leads"  # instead of a number of epochs

Measured = dict[str, Any]


def measure(nodes: Attacked, row: str, connections: int, options: argparse.Namespace) -> Measured:
    """Attack for some time: what others noticed, epochs passed, memory at most and afterwards."""
    elements: int = options.elements
    if row == "InitProducerId":
        nodes.add_acls(elements or ACLS)
    target = nodes.target(
        follower=options.follower, elements=elements, attacker=options.source, seed=options.seed
    )
    controllers = list(nodes.quorum.controllers.values())
    epoch = nodes.quorum.epoch()
    others = Others(target, f"{row.lower()}-{connections}", nodes.new_brokers(BROKERS))
    attacker = Attacker(row, target, connections)
    before = [one.rss_mib() for one in controllers]
    most = list(before)
    others.start()
    attacker.start()
    began = time.monotonic()
    while time.monotonic() - began < options.seconds and not attacker.has_ended():
        time.sleep(POLL_S)
        most = [max(most_mib, one.rss_mib()) for most_mib, one in zip(most, controllers, strict=True)]
    took_s = time.monotonic() - began
    made, answered = attacker.end()
    deadline_s = time.monotonic() + options.recovery
    times = others.end(options.recovery / 2)
    epoch_now = within(deadline_s - time.monotonic(), partial(epoch_after_recovery, nodes))
    time.sleep(options.settle)
    after = [one.rss_mib() for one in controllers]
    found: Measured = {"made": made, "answered": answered, "seconds": took_s}
    found["depositions"] = None if epoch_now is None else epoch_now - epoch
    for name in ("fetch", "heartbeat", "operation", "health"):
        if times[name]:
            for share, label in ((0.5, "p50"), (0.99, "p99"), (1.0, "max")):
                found[f"{name}_{label}_ms"] = percentile(times[name], share)
            found[f"{name}s"] = len(times[name])
    found["health_failed"] = len(times["health_failed"])
    found["memory_grown_most_mib"] = max(high - low for high, low in zip(most, before, strict=True))
    found["memory_grown_mib"] = max(now - then for now, then in zip(after, before, strict=True))
    found["load_average"] = os.getloadavg()[0]
    return found


def epoch_after_recovery(nodes: Attacked) -> int:
    """The epoch, once a leader answers and all voters follow it."""
    nodes.quorum.wait_for_leader(timeout_s=FOREVER_S)
    nodes.quorum.wait_for_voters(*nodes.quorum.controllers)
    return nodes.quorum.epoch()


def within(seconds: float, ask: Callable[[], int]) -> int | None:
    """What a question is answered within some time; None if it is not."""
    answers: list[int] = []

    def work() -> None:
        with suppress(OSError, AssertionError):
            answers.append(ask())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(max(seconds, 0))
    return answers[0] if answers else None


def measure_all(kind: Kind, rows: list[str], options: argparse.Namespace) -> Iterator[tuple[str, Measured]]:
    """Each row from each number of connections; nodes that do not recover from one are replaced."""
    jobs = [
        (row, connections)
        for row in rows
        for connections in ((1,) if row in OF_ONE_SIZE else options.connections or (1, 50))
    ]
    while jobs:
        with attacked(kind, with_broker=any(row.endswith(BY_BROKER) for row, _ in jobs)) as nodes:
            while jobs:
                row, connections = jobs.pop(0)
                name = f"{row} x{connections}"
                sys.stderr.write(f"{kind}: {name}, at most {options.seconds:g} s\n")
                try:
                    found = measure(nodes, row, connections, options)
                except (OSError, EOFError, AssertionError) as error:
                    sys.stderr.write(f"{name}: could not be measured: {error}\n")
                    break
                yield name, found
                if found["depositions"] is None:
                    sys.stderr.write(f"{name}: the nodes do not recover in {options.recovery:g} s\n")
                    break


def table(results: dict[str, dict[str, Measured]]) -> Table:
    shown = Table(title="Hostile load on three controllers: what others notice")
    heads = "attack", "of", "made", "answered", "epochs", "fetch p50", "p99", "max", "heartbeat p99", "max"
    for column in (*heads, "create p99", "max", "memory", "after"):
        shown.add_column(column, justify="left" if column in ("attack", "of") else "right")
    keys = (
        "fetch_p50",
        "fetch_p99",
        "fetch_max",
        "heartbeat_p99",
        "heartbeat_max",
        "operation_p99",
        "operation_max",
    )
    for row, sides in results.items():
        for side, found in sides.items():
            cells = [f"{found[f'{key}_ms']:,.1f}" if f"{key}_ms" in found else "-" for key in keys]
            epochs = NO_LEADER if found["depositions"] is None else f"{found['depositions']:,}"
            counts = [f"{found['made']:,}", f"{found['answered']:,}", epochs]
            memory = [f"{found[key]:+,.0f}" for key in ("memory_grown_most_mib", "memory_grown_mib")]
            failed = f" ({found['health_failed']} probes failed)" if found["health_failed"] else ""
            shown.add_row(row + failed, side, *counts, *cells, *memory)
    return shown


def commit() -> str:
    command = ["git", "-C", str(BENCH), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="duration of each attack")
    parser.add_argument(
        "--recovery", type=float, default=300, help="seconds until a quorum that answers nothing is given up"
    )
    parser.add_argument("--settle", type=float, default=5, help="seconds until memory is read again")
    parser.add_argument("--connections", type=int, action="append", help="default: 1, and 50")
    parser.add_argument("--rows", choices=ROWS, nargs="+", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--elements", type=int, default=0, help="instead of each row's own number")
    parser.add_argument(
        "--source",
        default=HOSTILE_HOST,
        metavar="ADDRESS",
        help="of the attacker, by default %(default)s; 127.0.0.1 is that of the nodes themselves",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first random request; they count up")
    parser.add_argument("--follower", action="store_true", help="attack a follower, not the leader")
    parser.add_argument("--controller", choices=["kraftd", "apache"], help="just this one")
    parser.add_argument("--label", default="kraftd", help="the name of kraftd's side in results and plot")
    parser.add_argument("--keep", action="store_true", help="put the figures into plots/, and draw them")
    options = parser.parse_args()
    kinds: list[Kind] = [options.controller] if options.controller else ["kraftd", "apache"]
    rows = options.rows or list(ROWS)
    console, began = Console(highlight=False, width=None if sys.stdout.isatty() else 190), time.time()
    RESULTS.mkdir(exist_ok=True)
    written = RESULTS / f"hostile-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(began))}.json"
    results: dict[str, dict[str, Measured]] = {}
    for kind in kinds:
        side = options.label if kind == "kraftd" else f"Kafka {KAFKA_VERSION}"
        chosen = [row for row in rows if kind == "kraftd" or row not in OF_KRAFTD]
        for name, found in measure_all(kind, chosen, options):
            results.setdefault(name, {})[side] = found
            console.print(f"{side}: {name}: {json.dumps(found)}")
            report = {
                "commit": commit(), "kafka": KAFKA_VERSION, "python": platform.python_version(),
                "cores": os.cpu_count(), "seconds": options.seconds, "follower": options.follower,
                "rows": results,
            }  # fmt: skip
            written.write_text(json.dumps(report, indent=1) + "\n")
    console.print(table(results))
    console.print(f"written to {written}")
    if options.keep:
        console.print(f"plot: {draw(remember(results, PLOTS), PLOTS)}")
    own = {name: sides[options.label] for name, sides in results.items() if options.label in sides}
    deposed = [name for name, found in own.items() if found["depositions"] != 0]
    if deposed:
        sys.stderr.write(f"kraftd's leader was deposed: {', '.join(deposed)}\n")
    return 1 if deposed else 0


if __name__ == "__main__":
    sys.exit(main())
