"""Plays random transactional requests on a stock node and on kraftd's, for as long as is asked.

python -m tests.kafka.transactions --seed 100 --seeds 20
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.kafka.transactions.conftest import one_of_each
from tests.kafka.transactions.pair import TransactionPair
from tests.kafka.transactions.test_random_sequences import play


def main() -> int:
    parser = argparse.ArgumentParser(description="kraftd's transactions beside those of a stock node")
    parser.add_argument("--seed", type=int, default=1, help="the first one; then the next")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200, help="drawn from each seed")
    parser.add_argument(
        "--versions", type=int, nargs="*", default=[2, 1, 0], help="levels of transaction.version"
    )
    chosen = parser.parse_args()
    differences = 0
    with tempfile.TemporaryDirectory(prefix="transactions-") as home, one_of_each(Path(home)) as nodes:
        pair = TransactionPair(nodes)
        pair.begin()
        for version in chosen.versions:
            pair.set_version(version)
            same = 0
            for seed in range(chosen.seed, chosen.seed + chosen.seeds):
                _, found = play(pair, seed, version, chosen.steps)
                for text in found:
                    print(text, flush=True)
                same += not found
                differences += len(found)
            print(
                f"transaction.version {version}: {same} of {chosen.seeds} seeds without a difference",
                flush=True,
            )
        pair.close()
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
