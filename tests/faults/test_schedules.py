"""A random schedule of faults from a printed seed: KRAFTD_FAULTS_SEED=n repeats it.

Real processes keep no exact time, so a seed repeats the faults and their order, not every interleaving.
KRAFTD_FAULTS_COUNT=n makes it longer.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable

import pytest

from tests.faults.proxy import Link
from tests.faults.quorum import VOTERS, FaultyQuorum, surviving

_LINKS: list[Link] = list(itertools.permutations(VOTERS, 2))
_COUNT = int(os.environ.get("KRAFTD_FAULTS_COUNT", "16"))
_SEED = int(os.environ.get("KRAFTD_FAULTS_SEED", random.SystemRandom().randrange(1 << 31)))
_LASTS_S = 0.2, 2.5


class Nemesis:
    """Draws faults from a seed and causes them, one at a time or several together."""

    def __init__(self, quorum: FaultyQuorum, seed: int) -> None:
        self.done: list[str] = []
        self._quorum, self._random = quorum, random.Random(seed)
        self._faults: list[Callable[[], str]] = [
            self.kill, self.kill_all, self.stop, self.freeze, self.part, self.cut, self.slow, self.reset,
        ]  # fmt: skip

    def __repr__(self) -> str:
        return f"<Nemesis {' '.join(self.done)}>"

    def run(self, count: int) -> None:
        for _ in range(count):
            what = self._random.choice(self._faults)()
            self.done.append(what)
            print(what, flush=True)
            time.sleep(self._random.uniform(*_LASTS_S))  # the duration of the fault
            if self._random.random() < 0.7:
                self.mend()

    def mend(self) -> None:
        """End every fault, but do not wait until its effects are over."""
        self._quorum.proxy.heal()
        for controller in self._quorum.controllers.values():
            controller.thaw()
            if not controller.alive:
                controller.start()

    def _one(self) -> int:
        """A node, the leader half of the time."""
        leader, any_one = self._quorum.leader(), self._random.choice(VOTERS)
        return leader if leader is not None and self._random.random() < 0.5 else any_one

    def kill(self) -> str:
        node_id = self._one()
        self._quorum.controllers[node_id].thaw()
        self._quorum.controllers[node_id].kill()
        return f"kill {node_id}"

    def kill_all(self) -> str:
        for controller in self._quorum.controllers.values():
            controller.thaw()
            controller.kill()
        return "kill all"

    def stop(self) -> str:
        node_id = self._one()
        self._quorum.controllers[node_id].signal(15)
        return f"stop {node_id}"

    def freeze(self) -> str:
        node_id = self._one()
        self._quorum.controllers[node_id].freeze()
        return f"freeze {node_id}"

    def part(self) -> str:
        node_id = self._one()
        self._quorum.proxy.part(node_id, *self._quorum.others(node_id))
        return f"part {node_id}"

    def cut(self) -> str:
        links = self._random.sample(_LINKS, self._random.randint(1, 3))
        self._quorum.proxy.cut(*links)
        return f"cut {links}"

    def slow(self) -> str:
        delay_s = self._random.uniform(0.005, 0.3)
        self._quorum.proxy.slow(*self._random.sample(_LINKS, 3), delay_s=delay_s)
        return f"slow by {delay_s:.3f} s"

    def reset(self) -> str:
        return f"reset {self._quorum.proxy.reset(*_LINKS)} connections"


@pytest.mark.timeout(240 + 10 * _COUNT)
def test_a_random_schedule_of_faults_loses_nothing(three: FaultyQuorum) -> None:
    print(f"KRAFTD_FAULTS_SEED={_SEED}")
    with surviving(three, "schedule"):
        Nemesis(three, _SEED).run(_COUNT)
