"""Plays sequences beside Apache Kafka and writes docs/conformance.md: `make conformance`.

python -m tests.kafka.conformance --sequences 20000 --write
python -m tests.kafka.conformance --seed 20001 --sequences 1000 --write --add
python -m tests.kafka.conformance --seed 17 --sequences 1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.kafka.conformance.page import PAGE, page, part_of_brokers, read, summary
from tests.kafka.conformance.run import Run
from tests.kafka.conformance.seen import Seen


def main() -> int:
    parser = argparse.ArgumentParser(description="kraftd beside Apache Kafka's controller")
    parser.add_argument("--seed", type=int, default=1, help="of the first sequence; then the next")
    parser.add_argument("--sequences", type=int, default=300)
    parser.add_argument("--steps", type=int, default=30, help="drawn in each sequence")
    parser.add_argument("--minutes", type=float, default=600, help="after which no other sequence begins")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--add", action="store_true", help="to what docs/conformance.md has counted")
    chosen = parser.parse_args()
    print(f"seeds {chosen.seed} to {chosen.seed + chosen.sequences - 1}", flush=True)
    run = Run(chosen.steps, report=lambda text: print(text, flush=True))
    deadline = time.monotonic() + chosen.minutes * 60

    def seeds() -> Iterator[int]:
        for seed in range(chosen.seed, chosen.seed + chosen.sequences):
            if time.monotonic() > deadline:
                return
            yield seed

    with tempfile.TemporaryDirectory(prefix="conformance-") as home:
        run.play(Path(home), seeds())
    print(run.summary())
    if chosen.write:
        text = PAGE.read_text()
        total = read(text) if chosen.add else Seen()
        total.add(run.seen)
        PAGE.write_text(page(total, summary(total), part_of_brokers(text)))
    return 1 if run.differences else 0


if __name__ == "__main__":
    sys.exit(main())
