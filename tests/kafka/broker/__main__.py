"""Plays random requests of clients on a stock broker and on kraftd's, for as long as is asked.

python -m tests.kafka.broker --seed 100 --seeds 50 --steps 300
python -m tests.kafka.broker --seed 100 --seeds 20 --shares
python -m tests.kafka.broker --seed 100 --seeds 20 --members
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.kafka.broker import test_random_members as members
from tests.kafka.broker import test_random_share_requests as shares
from tests.kafka.broker.pair import BrokerPair
from tests.kafka.broker.run import Run


def play_all(runs: list[Callable[[BrokerPair], object]]) -> int:
    """Play each; a difference ends its pair of nodes. Returns the exit code."""
    total, differences = len(runs), 0
    while runs:
        with tempfile.TemporaryDirectory(prefix="runs-") as home, BrokerPair(Path(home)) as pair:
            try:
                while runs:
                    runs.pop(0)(pair)
            except (AssertionError, OSError) as problem:
                print(problem, flush=True)
                for side in pair.sides:
                    if not side.node.alive:
                        print(f"{side} has ended:\n{side.node.log_tail()}", flush=True)
                differences += 1
    print(f"{total - differences} of {total} runs without a difference")
    return 1 if differences else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="kraftd beside Apache Kafka's combined node")
    parser.add_argument("--seed", type=int, default=1, help="the first one; then the next")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300, help="drawn from each seed")
    parser.add_argument("--shares", action="store_true", help="records of share groups in place of all APIs")
    parser.add_argument("--members", action="store_true", help="members of groups in place of all APIs")
    chosen = parser.parse_args()
    print(f"seeds {chosen.seed} to {chosen.seed + chosen.seeds - 1}", flush=True)
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    if chosen.members:
        return play_all([partial(members.play, seed=seed, steps=chosen.steps) for seed in seeds])
    if chosen.shares:
        levels = ("read_uncommitted", "read_committed")
        return play_all(
            [
                partial(shares.play, seed=seed, isolation=level, partitions=count, steps=chosen.steps)
                for seed in seeds
                for level in levels
                for count in (shares.ONE, shares.SEVERAL)
            ]
        )
    with tempfile.TemporaryDirectory(prefix="conformance-") as home, BrokerPair(Path(home)) as pair:
        run = Run(pair, report=lambda text: print(text, flush=True))
        for seed in seeds:
            run.play(seed, chosen.steps)
        print(run.summary())
        print(dict(run.apis), dict(run.errors))
    return 1 if run.differences else 0


if __name__ == "__main__":
    sys.exit(main())
