"""``python -m bench.mocks``: a whole kraftd beside two mocks that tests start instead of a Kafka.

These are franz-go's kfake, in Go, and the mock cluster of librdkafka, in C. Neither writes to a disk.
README.md describes how every figure is taken.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.figures import FIGURES, Figures
from bench.measure import QUICK, Plan
from bench.whole import make_topic, produces, starts_and_idle, whole_kafka
from testkit.fetch import locked
from testkit.node import CombinedNode
from testkit.process import Process, free_port

KFAKE = Path(__file__).with_name("kfake")
# A topic is made as soon as a client asks for it.
LIBRDKAFKAS = """
import time
from confluent_kafka import Producer
mock = Producer({"test.mock.num.brokers": 1, "log_level": 0})
print(next(iter(mock.list_topics("t", timeout=10).brokers.values())).port, flush=True)
while True:
    time.sleep(60)
"""


class Mock(Process):
    """A mock in a process of its own, with a topic t."""

    client_port = 0

    def start(self) -> None:
        super().start()
        self.client_port = self.port_found()

    def port_found(self) -> int:
        raise NotImplementedError


class Kfake(Mock):
    """franz-go's kfake, built by Go before the first start. Raises CalledProcessError if that fails."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        with locked("kfake") as cache:
            program = cache / "kfake"
            go = shutil.which("go") or "/usr/local/go/bin/go"
            subprocess.run([go, "build", "-o", str(program), "."], cwd=KFAKE, check=True)
        super().__init__("kfake", home, lambda: [str(program), str(self.port)])

    def port_found(self) -> int:
        return self.port


class Librdkafkas(Mock):
    """The mock cluster of librdkafka, which a producer of its own process starts."""

    def __init__(self, home: Path) -> None:
        super().__init__("librdkafka", home, lambda: [sys.executable, "-c", LIBRDKAFKAS])

    def port_found(self) -> int:
        self.wait(lambda: self.log_text().endswith("\n"), "prints its port")
        return int(self.log_text())


@contextmanager
def running(kind: Callable[[Path], Mock]) -> Iterator[Mock]:
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        mock = kind(Path(home))
        mock.start()
        try:
            yield mock
        finally:
            mock.kill()


@contextmanager
def kraftd() -> Iterator[CombinedNode]:
    with whole_kafka("kraftd") as node:
        make_topic(node, "t")
        yield node


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mocks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything: rough figures")
    plan = QUICK if parser.parse_args().quick else Plan()
    columns: dict[str, Figures] = {}
    for name, opened in (
        ("kraftd", kraftd),
        ("kfake", lambda: running(Kfake)),
        ("librdkafka's mock", lambda: running(Librdkafkas)),
    ):
        with opened() as node:
            columns[name] = starts_and_idle(node, plan) | produces(node, plan)
    shown = Table(title=f"kraftd beside mocks, load average {os.getloadavg()[0]:.0f}")
    for heading in ("", *columns):
        shown.add_column(heading, justify="right" if heading else "left")
    for key in columns["kraftd"]:
        name = FIGURES[key].name.removeprefix("whole Kafka: ")
        shown.add_row(name, *(FIGURES[key].written(found[key]) for found in columns.values()))
    Console(highlight=False).print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
