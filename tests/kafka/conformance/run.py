"""Many sequences on pairs of controllers, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.kafka.conformance.player import Player
from tests.kafka.conformance.seen import Seen
from tests.kafka.conformance.sides import origin_of, started_pair
from tests.kafka.conformance.snapshots import snapshot_difference
from tests.kafka.differential.pair import GaveUp

SEQUENCES_A_BLOCK = 250  # those that are played on a pair of one origin
_FAULT, _FAULT_LENGTH = "Encountered quorum controller fault", 600
PLAYS = 3  # of a sequence that finds something


def _fault(player: Player) -> str:
    """What Kafka's controller logs of the fault at which it gave up its leadership."""
    text = player.pair.apache.controller.log_text()
    return text[text.rfind(_FAULT) :][:_FAULT_LENGTH]


class Run:
    """Sequences of as many drawn steps; differences are passed to `report` and kept.

    A sequence with a difference is played again: Kafka's controller answers some requests, of tokens above
    all, from what its log said a moment ago. What does not repeat is counted only.
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
        """A sequence for each of the seeds, on as many pairs as it takes."""
        left = iter(seeds)
        seed = next(left, None)
        number = 0
        while seed is not None:
            number += 1
            origin = origin_of(seed // SEQUENCES_A_BLOCK)
            with started_pair(home / f"pair-{number}", origin) as pair:
                player = Player(pair)
                seed = self._play_block(player, seed, left)
                if not pair.is_spent:
                    self._compare_images(player, number)

    def _play_block(self, player: Player, seed: int, left: Iterator[int]) -> int | None:
        """Sequences until another pair is needed. Returns the next seed, None if all were used."""
        block = seed // SEQUENCES_A_BLOCK
        following: int | None = seed
        while following is not None and following // SEQUENCES_A_BLOCK == block and not player.pair.is_spent:
            try:
                self._play(player, following)
            except GaveUp as who:
                self.gave_up.append(f"{who}'s controller at seed {following}: {_fault(player)}")
                self.report(f"gave up its leadership: {self.gave_up[-1]}")
                player.pair.is_spent = True
            following = next(left, None)
        return following

    def _play(self, player: Player, seed: int) -> None:
        """Play a sequence, and again while it finds anything."""
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
        """Play a sequence that takes nothing away, and compare the snapshots that both make then."""
        for difference in (*player.play(-number, 3 * self.steps, tidy=False), snapshot_difference(player)):
            self._note(difference)
        self.images += 1

    def _note(self, difference: str) -> None:
        if difference:
            self.differences.append(difference)
            self.report(difference)

    def summary(self) -> str:
        """What was played and found, in a line."""
        return (
            f"{self.seen.sequences:,} sequences of {self.seen.steps:,} requests, {self.images} images: "
            f"{len(self.differences)} differences, {len(self.not_repeated)} not repeated, "
            f"{len(self.gave_up)} leaderships given up"
        )
