"""Three replicas under random events: nothing acknowledged is lost or doubled (P1, P2), and faults are
noticed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kraftd.partition import partition as partition_module
from kraftd.partition import replication
from kraftd.partition.isr import InSyncReplicas
from kraftd.partition.partition import Partition
from kraftd.partition.producer_entry import ProducerEntry
from kraftd.partition.producers import ProducerStates
from kraftd.partition.replicas import FollowerProgress
from tests.partition.cluster import IDS, LAG_MS, Cluster

BROKER = st.sampled_from(IDS)


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()

    @rule(written=st.integers(0, 9), again=st.integers(0, 4))
    def produce(self, written: int, again: int) -> None:
        for broker_id in IDS:  # at every broker that believes it leads
            if self.cluster.partition(broker_id).is_leader:
                self.cluster.produce(broker_id, written=written > 0, again=again == 0)

    @rule(broker_id=BROKER, times=st.integers(1, 3))
    def fetch(self, broker_id: int, times: int) -> None:
        for _ in range(times):
            self.cluster.fetch(broker_id)

    @rule(broker_id=BROKER)
    def learn(self, broker_id: int) -> None:
        self.cluster.learn(broker_id)

    @rule(broker_id=BROKER)
    def elect(self, broker_id: int) -> None:
        self.cluster.elect(broker_id)

    @rule(refused=st.booleans())
    def answer(self, refused: bool) -> None:
        self.cluster.answer(refused=refused)

    @rule(ms=st.sampled_from((1, LAG_MS // 2, LAG_MS + 1)), broker_id=BROKER)
    def lag(self, ms: int, broker_id: int) -> None:
        self.cluster.advance(ms)
        self.cluster.shrink(broker_id)

    @rule(broker_id=BROKER, fenced=st.booleans())
    def fence(self, broker_id: int, fenced: bool) -> None:
        (self.cluster.fence if fenced else self.cluster.unfence)(broker_id)

    @invariant()
    def holds(self) -> None:
        self.cluster.check()


def test_nothing_acknowledged_is_lost_or_doubled_by_three_replicas() -> None:
    run_state_machine_as_test(
        ClusterMachine, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )


def random_world(seed: int, steps: int = 120) -> Cluster:
    """A longer walk than hypothesis's, from a seed."""
    random, cluster = Random(seed), Cluster(min_isr=1 + seed % 2)
    for _ in range(steps):
        broker_id = random.choice(IDS)
        what = random.choices(range(8), (30, 40, 20, 4, 12, 8, 3, 4))[0]
        if what == 0:
            for each in IDS:
                if cluster.partition(each).is_leader:
                    cluster.produce(each, written=random.random() < 0.9, again=random.random() < 0.2)
        elif what == 1:
            cluster.fetch(broker_id)
        elif what == 2:
            cluster.learn(broker_id)
        elif what == 3:
            cluster.elect(broker_id)
        elif what == 4:
            cluster.answer(refused=random.random() < 0.2)
        elif what == 5:
            cluster.advance(random.choice((1, LAG_MS + 1)))
            cluster.shrink(broker_id)
        elif what == 6:
            cluster.fence(broker_id)
        else:
            cluster.unfence(broker_id)
        cluster.check()
    return cluster


def test_long_random_worlds_hold_and_get_somewhere() -> None:
    worlds = [random_world(seed) for seed in range(150)]
    assert sum(len(each.promised) for each in worlds) > 500
    assert sum(each.registered.leader_epoch for each in worlds) > 300


def ignore_maximal(self: InSyncReplicas, *arguments: Any) -> Any:
    proposal = PROPOSE(self, *arguments)
    self.maximal = proposal.isr
    return proposal


def always_follows_end(self: Partition, now_ms: int) -> Any:
    return self.move_high_watermark(self.log_end_offset) if self.is_leader else []


def joins_early(partition: Partition, follower: FollowerProgress) -> bool:
    return partition.isr.pending is None and follower.broker_id not in partition.isr.committed


def acknowledged_when_written(self: Partition, required_offset: int) -> Any:
    return (
        partition_module.ErrorCode.NONE
        if self.is_leader
        else partition_module.ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


PROPOSE = InSyncReplicas.propose
MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a proposal to shrink counts as true": lambda patch: patch.setattr(
        InSyncReplicas, "propose", ignore_maximal
    ),
    "the high watermark is the log end": lambda patch: patch.setattr(
        Partition, "advance_high_watermark", always_follows_end
    ),
    "a follower joins before it has caught up": lambda patch: patch.setattr(
        replication, "_is_due_to_join", joins_early
    ),
    "acks=-1 waits for the leader alone": lambda patch: patch.setattr(
        Partition, "acknowledged", acknowledged_when_written
    ),
    "duplicates are not found": lambda patch: patch.setattr(
        ProducerEntry, "duplicate_of", lambda self, header: None
    ),
    "a failed append is not undone": lambda patch: patch.setattr(
        ProducerStates, "roll_back", lambda self, offset: None
    ),
    "offsets of a failed append are lost": lambda patch: patch.setattr(
        Partition, "append_failed", lambda self, offset: None
    ),
    "known metadata lets a proposal be forgotten": lambda patch: patch.setattr(
        Partition, "_lead", lead_without_proposal
    ),
    "divergence is not seen": lambda patch: patch.setattr(
        "tests.partition.cluster.judge_fetch", without_divergence
    ),
    "leader epochs are not compared": lambda patch: patch.setattr(
        Partition, "check_leader_epoch", lambda self, epoch: partition_module.ErrorCode.NONE
    ),
    "older metadata is taken": lambda patch: patch.setattr(
        Partition, "follow_metadata", follow_without_epoch
    ),
    "a refused proposal stays": lambda patch: patch.setattr(
        InSyncReplicas, "failed", lambda self, error: self.commit(self.pending.isr)
    ),
}


def without_divergence(*arguments: Any, **named: Any) -> Any:
    from kraftd.partition.reading import judge_fetch

    return judge_fetch(*arguments, **{**named, "last_fetched_epoch": -1})


LEAD = Partition._lead


def lead_without_proposal(self: Partition, registration: Any, now_ms: int) -> Any:
    """Metadata that an answer brought before takes the place of the proposal that was made since then."""
    effects = LEAD(self, registration, now_ms)
    self.isr.commit(registration.isr)
    return effects + self.advance_high_watermark(now_ms)


FOLLOW = Partition.follow_metadata


def follow_without_epoch(self: Partition, registration: Any, now_ms: int) -> Any:
    """The high watermark and ends of followers are kept over a change of leaders."""
    before = dict(self.followers)
    effects = FOLLOW(self, registration, now_ms)
    self.followers.update({key: value for key, value in before.items() if key in self.followers})
    return effects


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        for seed in range(600):
            random_world(seed)
