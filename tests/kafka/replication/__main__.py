"""Plays transactional copies on clusters of stock and kraftd brokers that die, freeze and roll, seed by seed.

python -m tests.kafka.replication --seed 1 --seeds 4 --kinds kraftd-stock-kraftd
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.kafka.replication.exactly_once import KINDS, play


def main() -> int:
    parser = argparse.ArgumentParser(description="exactly once on mixed clusters")
    parser.add_argument("--seed", type=int, default=1, help="the first one; then the next")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0, help="of a run; 0: nine blows")
    parser.add_argument("--kinds", choices=list(KINDS), default="kraftd-stock-kraftd")
    parser.add_argument("--controller", choices=("kraftd", "apache"), default="kraftd")
    parser.add_argument("--home", type=Path, required=True, help="a folder for logs, and for data meanwhile")
    chosen = parser.parse_args()
    began_s = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began_s:6.1f} {text}", flush=True)

    for seed in range(chosen.seed, chosen.seed + chosen.seeds):
        say(f"seed {seed}, {chosen.kinds} under {chosen.controller}")
        say(str(play(chosen.home / str(seed), chosen.kinds, chosen.controller, seed, chosen.seconds, say)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
