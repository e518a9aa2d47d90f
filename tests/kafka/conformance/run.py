"""Many sequences on pairs of controllers, and the differences that they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.kafka.conformance.player import Player
from tests.kafka.conformance.seen import Seen
from tests.kafka.conformance.sides import origin_of, started_pair
from tests.kafka.conformance.snapshots import snapshot_difference
from tests.kafka.differential.pair import GaveUp

SEQUENCES_A_BLOCK = 250  # played on pairs of one origin
_FAULT, _FAULT_LENGTH = "Encountered quorum controller fault", 600
PLAYS = 3  # of a sequence with differences


def _fault(player: Player) -> str:
    """The fault in the log of Kafka's controller at which it gave up its leadership."""
    text = player.pair.apache.controller.log_text()
    return text[text.rfind(_FAULT) :][:_FAULT_LENGTH]


class Run:
    """Sequences of this many random steps; differences are passed to `report` and kept.

    A sequence with a difference is played again: Kafka's controller answers some requests, mostly about
    tokens, from a slightly older state. A difference that does not repeat is only counted.
    """

    def __init__(self, steps: int, report: Callable[[str], None]) -> None:
        self.steps, self.report = steps, report
        self.seen = Seen()
        self.differences: list[str] = []
        self.not_repeated: list[str] = []
        self.gave_up: list[str] = []
        self.images = 0

    def __repr__(self) -> str:
        return f"<Run: {self.summary()}>"

    def play(self, home: Path, seeds: Iterable[int]) -> None:
        """Play a sequence for each seed, on as many pairs as that needs."""
        remaining = iter(seeds)
        seed = next(remaining, None)
        number = 0
        while seed is not None:
            number += 1
            origin = origin_of(seed // SEQUENCES_A_BLOCK)
            with started_pair(home / f"pair-{number}", origin) as pair:
                player = Player(pair)
                seed = self._play_block(player, seed, remaining)
                if not pair.is_spent:
                    self._compare_images(player, number)

    def _play_block(self, player: Player, seed: int, remaining: Iterator[int]) -> int | None:
        """Play sequences until another pair is needed. Return the next seed, or None if all were played."""
        block = seed // SEQUENCES_A_BLOCK
        following: int | None = seed
        while following is not None and following // SEQUENCES_A_BLOCK == block and not player.pair.is_spent:
            try:
                self._play(player, following)
            except GaveUp as error:
                self.gave_up.append(f"{error}'s controller at seed {following}: {_fault(player)}")
                self.report(f"gave up its leadership: {self.gave_up[-1]}")
                player.pair.is_spent = True
            following = next(remaining, None)
        return following

    def _play(self, player: Player, seed: int) -> None:
        """Play a sequence, and repeat it while it finds differences."""
        first: list[str] = []
        found: list[str] = []
        for _ in range(PLAYS):
            player.seen = Seen()
            found = player.play(seed, self.steps)
            if not found:
                break
            first = first or found
            if player.pair.is_spent:
                break
        self.seen.add(player.seen)
        self.seen.sequences += 1
        if first and not found:
            self.not_repeated += first
            self.report(f"not repeated: {first[0]}")
        for difference in found:
            self._note(difference)

    def _compare_images(self, player: Player, number: int) -> None:
        """Play a sequence without removing its traces, and compare the snapshots that both then make."""
        for difference in (*player.play(-number, 3 * self.steps, tidy=False), snapshot_difference(player)):
            self._note(difference)
        self.images += 1

    def _note(self, difference: str) -> None:
        if difference:
            self.differences.append(difference)
            self.report(difference)

    def summary(self) -> str:
        """One line: what was played and found."""
        return (
            f"{self.seen.sequences:,} sequences of {self.seen.steps:,} requests, {self.images} images: "
            f"{len(self.differences)} differences, {len(self.not_repeated)} not repeated, "
            f"{len(self.gave_up)} leaderships given up"
        )
