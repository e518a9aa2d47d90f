"""Plays random members of groups on a stock broker and on kraftd's coordinator, for as long as is asked.

python -m tests.kafka.groups --seed 100 --seeds 20 consumers shares
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from operator import length_hint
from pathlib import Path

from testkit.client import Client
from testkit.process import HOST, wait_until
from tests.kafka.groups.conftest import small_groups
from tests.kafka.groups.pair import Pair
from tests.kafka.groups.test_consumer_groups import Both, play_consumers
from tests.kafka.groups.test_migration import play_migration
from tests.kafka.groups.test_random_group_requests import play_classic
from tests.kafka.groups.test_share_groups import Both as ShareBoth
from tests.kafka.groups.test_share_groups import play_shares
from tests.kafka.groups.test_share_state import has_share_coordinator, play_share_state


def shares(pair: Pair, seed: int) -> None:
    topic_id = pair.desk.topics.topic_id("orders")
    assert topic_id
    with Client(HOST, pair.port) as client:
        wait_until(lambda: has_share_coordinator(client, topic_id), "the broker keeps share groups", 60)
    play_shares(ShareBoth(pair), seed, 120)


PLAYS: dict[str, Callable[[Pair, int], object]] = {
    "classic": lambda pair, seed: play_classic(pair, seed, 600),
    "consumers": lambda pair, seed: play_consumers(Both(pair), seed),
    "migration": lambda pair, seed: play_migration(Both(pair), seed),
    "shares": shares,
    "share-state": lambda pair, seed: play_share_state(pair, seed, 300),
}


def play(name: str, seeds: Iterator[int]) -> int:
    """Play seeds in one cluster until the two sides part; return how many were the same."""
    same = 0
    with tempfile.TemporaryDirectory(prefix="groups-") as home, small_groups(Path(home), "kraftd") as cluster:
        pair = Pair(cluster)
        for seed in seeds:
            try:
                PLAYS[name](pair, seed)
            except (AssertionError, TimeoutError) as problem:
                print(f"{name}, seed {seed}: {problem}", flush=True)
                break
            same += 1
        pair.close()
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description="kraftd's group coordinator beside a stock broker's")
    parser.add_argument("--seed", type=int, default=1, help="the first one; then the next")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("plays", nargs="*", metavar="PLAY", help=f"of {', '.join(PLAYS)}; else all")
    chosen = parser.parse_args()
    failed = 0
    for name in chosen.plays or PLAYS:
        seeds, same = iter(range(chosen.seed, chosen.seed + chosen.seeds)), 0
        while length_hint(seeds):
            same += play(name, seeds)
        print(f"{name}: {same} of {chosen.seeds} seeds without a difference", flush=True)
        failed += chosen.seeds - same
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
