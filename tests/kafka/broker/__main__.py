"""Plays random requests of clients on a stock broker and on kraftd's, for as long as is asked.

python -m tests.kafka.broker --seed 100 --seeds 50 --steps 300
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.kafka.broker.pair import BrokerPair
from tests.kafka.broker.run import Run


def main() -> int:
    parser = argparse.ArgumentParser(description="kraftd beside Apache Kafka's combined node")
    parser.add_argument("--seed", type=int, default=1, help="the first one; then the next")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300, help="drawn from each seed")
    chosen = parser.parse_args()
    print(f"seeds {chosen.seed} to {chosen.seed + chosen.seeds - 1}", flush=True)
    with tempfile.TemporaryDirectory(prefix="conformance-") as home, BrokerPair(Path(home)) as pair:
        run = Run(pair, report=lambda text: print(text, flush=True))
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            run.play(seed, chosen.steps)
        print(run.summary())
        print(dict(run.apis), dict(run.errors))
    return 1 if run.differences else 0


if __name__ == "__main__":
    sys.exit(main())
