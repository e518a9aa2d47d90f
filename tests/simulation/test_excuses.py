"""Liveness is required unless a removed voter without pre-votes disturbs the quorum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.simulation.cluster import Host
from kraftd.simulation.options import draw_options
from kraftd.simulation.processes.files import CLUSTER_ID
from kraftd.simulation.processes.process import Process
from kraftd.simulation.schedule import MS, SECOND
from kraftd.simulation.world import World
from tests.simulation.mutants import consensus
from tests.simulation.mutants.planted import Planted

THREE: dict[str, Any] = {
    "voter_count": 3,
    "observer_count": 0,
    "dynamic": True,
    "auto_join": False,
    "controllers": False,
    "old_versions": True,
}
SEEDS = 20


class Removed:
    """Three voters; a follower is removed while it is cut off, so it does not know of its removal."""

    def __init__(self, *, old: bool) -> None:
        options = draw_options(1)._replace(**THREE, loss=0.0, slow_chance=0.0, sync_us=(50, 500))
        self.world = World(1, options=options, faults=())
        self.cluster = self.world.cluster
        for host in self.cluster.hosts.values():
            host.is_old = old
            self.cluster.start(host)
        self.run(10 * SECOND)
        self.host = next(one for one in self.cluster.hosts.values() if one is not self.leader.host)
        self.cut(self.others, [self.host])
        key = self.host.key
        message = RemoveRaftVoterRequest(CLUSTER_ID, key.id, key.directory_id or b"")
        self.world.workload._call(self.leader, "remove voter", message, 0)
        self.run(300 * MS)
        self.world.liveness.healed_epoch = self.leader.core.epoch

    @property
    def leader(self) -> Process:
        leader = self.cluster.leader()
        assert leader is not None
        return leader

    @property
    def epoch(self) -> int:
        return max(one.process.core.epoch for one in self.cluster.hosts.values() if one.process is not None)

    @property
    def others(self) -> list[Host]:
        return [one for one in self.cluster.hosts.values() if one is not self.host]

    def cut(self, some: list[Host], others: list[Host]) -> None:
        self.world.network.cut |= {(one.id, other.id) for one in some for other in others}

    def run(self, for_us: int) -> None:
        self.world.schedule.run_until(self.world.schedule.now_us + for_us)

    @property
    def has_learnt_it(self) -> bool:
        assert self.host.process is not None
        return not self.host.process.core.voters.has_voter(self.host.key)


@pytest.fixture
def removed() -> Iterator[Removed]:
    one = Removed(old=True)
    yield one
    one.world.take_apart()


def test_a_removed_voter_without_an_election_excuses_nothing(removed: Removed) -> None:
    assert not removed.leader.core.voters.has_voter(removed.host.key)
    assert not removed.has_learnt_it
    assert removed.world.liveness.disturber() is None


def test_a_removed_voters_election_without_pre_votes_excuses_liveness(removed: Removed) -> None:
    epoch = removed.epoch
    removed.run(10 * SECOND)
    assert removed.epoch > epoch
    assert removed.world.liveness.disturber() == removed.host.id


def test_a_removed_voter_that_has_read_its_removal_excuses_nothing(removed: Removed) -> None:
    removed.run(10 * SECOND)
    removed.world.network.heal()
    removed.run(10 * SECOND)
    assert removed.has_learnt_it
    assert removed.world.liveness.disturber() is None


def test_with_pre_votes_no_removed_voter_disturbs_the_quorum() -> None:
    removed = Removed(old=False)
    epoch = removed.leader.core.epoch
    removed.run(10 * SECOND)
    assert not removed.has_learnt_it
    assert removed.leader.core.epoch == epoch
    assert removed.world.liveness.disturber() is None
    removed.world.take_apart()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mutant",
    [
        consensus.swallow_an_append,
        consensus.never_finish_a_voter_change,
        consensus.start_no_election,
        consensus.ask_again_at_once,
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_a_defect_among_older_versions_is_still_detected(
    mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    planted = Planted("any", **THREE, safety_us=5 * SECOND, faults=())
    violations = (planted.run(seed) for seed in range(SEEDS))
    found = next((one for one in violations if one is not None), None)
    assert found is not None and found.invariant in consensus.ALL[mutant].noticed_by, f"{found}"
