"""Invariants of partitions in random histories, and planted faults that these checks must find."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.controller.brokers import transitions
from kraftd.controller.partitions import change as partition_change
from kraftd.controller.partitions import edits as partition_edits
from kraftd.controller.partitions import isr, reassignment
from kraftd.controller.partitions.directories import assign_replicas_to_dirs
from kraftd.controller.partitions.election import balance_leaders, elect_leaders, elect_unclean_leaders
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_partition_reassignments_request as reassign_request
from kraftd.messages import alter_partition_request as isr_request
from kraftd.messages import assign_replicas_to_dirs_request as directories_request
from kraftd.messages import create_topics_request as create_request
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import record_version
from kraftd.metadata.state import NO_LEADER, NO_LEADER_CHANGE, RECOVERING, PartitionState
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster, directory

BROKERS = range(5)
STEPS = 60


class Life:
    """A cluster with random operations, checked after each of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        elr = rng.random() < 0.5
        self.cluster = Cluster(metadata_version=30 if elr else rng.choice((7, 11, 12, 17, 30)), elr=elr)
        self.elr = elr
        for broker_id in BROKERS:
            self.register(broker_id)
        self.steps = [
            self.create,
            self.alter_isr,
            self.alter_isr,
            self.alter_isr,
            self.reassign,
            self.reassign,
            self.fence,
            self.fence,
            self.unfence,
            self.unfence,
            self.unfence,
            self.shut_down,
            self.restart,
            self.balance,
            self.elect,
            self.configure,
            self.delete,
            self.grow,
            self.assign_directory,
        ]

    @property
    def image(self) -> Image:
        return self.cluster.image

    def run(self, steps: int = STEPS) -> None:
        for _ in range(2):
            self.create()
        for _ in range(steps):
            self.rng.choice(self.steps)()

    # Steps

    def register(self, broker_id: int) -> None:
        known = self.image.brokers.get(broker_id)
        self.cluster.broker(
            broker_id, epoch=self.image.offset + 1, directories=1 + broker_id % 2, fenced=known is not None
        )

    def some_partition(self) -> tuple[bytes, int, PartitionState] | None:
        partitions = [(t.id, i, p) for t in self.image.topics.values() for i, p in t.partitions.items()]
        return self.rng.choice(partitions) if partitions else None

    def some_replicas(self) -> tuple[int, ...]:
        return tuple(self.rng.sample(BROKERS, self.rng.randint(1, 4)))

    def create(self) -> None:
        name = self.rng.choice(("a", "b", "c.d", "c_d"))
        topic = create_request.CreatableTopic(name, self.rng.randint(1, 3), self.rng.randint(1, 3))
        self.decide(create_topics, create_request.CreateTopicsRequest([topic]), 7)

    def delete(self) -> None:
        if self.rng.random() < 0.3 and self.image.topics:
            topic_id = self.rng.choice(list(self.image.topics))
            self.decide(delete_topics, DeleteTopicsRequest([DeleteTopicState(None, topic_id)], (), 1), 6)

    def grow(self) -> None:
        if self.image.topics:
            topic = self.rng.choice(list(self.image.topics.values()))
            wanted = CreatePartitionsTopic(topic.name, len(topic.partitions) + 1, None)
            self.decide(create_partitions, CreatePartitionsRequest([wanted], 1), 3)

    def alter_isr(self) -> None:
        found = self.some_partition()
        if found is None or found[2].leader == NO_LEADER:
            return
        topic_id, index, partition = found
        members = [isr_request.BrokerState(partition.leader, self.epoch(partition.leader))]
        for replica in partition.replicas:
            if replica != partition.leader and self.rng.random() < 0.7:
                stale = self.rng.random() < 0.2
                members.append(isr_request.BrokerState(replica, self.epoch(replica) - stale))
        proposal = isr_request.PartitionData(
            index,
            partition.leader_epoch,
            (),
            members,
            self.rng.choice((0, partition.leader_recovery_state)),
            partition.partition_epoch,
        )
        request = isr_request.AlterPartitionRequest(
            partition.leader, self.epoch(partition.leader), [isr_request.TopicData(topic_id, [proposal])]
        )
        epochs = {member.broker_id: member.broker_epoch for member in members}
        eligible = {
            broker.id
            for broker in self.image.brokers.values()
            if broker.is_active and epochs.get(broker.id) == broker.epoch
        }
        self.decide(isr.alter_partition, request, 3, eligible=eligible)

    def epoch(self, broker_id: int) -> int:
        return self.image.brokers[broker_id].epoch

    def reassign(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic_id, index, before = found
        name = self.image.topics[topic_id].name
        moves = [
            reassign_request.ReassignablePartition(index, self.rng.choice((None, self.some_replicas())))
            for _ in range(self.rng.choice((1, 1, 1, 2)))
        ]
        request = reassign_request.AlterPartitionReassignmentsRequest(
            60_000, True, [reassign_request.ReassignableTopic(name, moves)]
        )
        self.decide(reassignment.alter_partition_reassignments, request, 1)
        # A move of a moving partition keeps the pending additions or removals, unless it has its own. Kafka
        # does the same, so the result may differ from the request.
        if len(moves) == 1 and moves[0].replicas is not None and not before.is_reassigning:
            now = self.image.partition(topic_id, index)
            assert now.is_reassigning or now.replicas == moves[0].replicas, "done, but not as wanted"

    def fence(self) -> None:
        broker_id = self.rng.choice(BROKERS)
        self.apply(transitions.handle_broker_fenced(self.cluster.ctx, broker_id))
        assert not self.image.led_count(broker_id), "a fenced broker leads (C5)"

    def unfence(self) -> None:
        broker = self.image.brokers[self.rng.choice(BROKERS)]
        if broker.fenced and not broker.in_controlled_shutdown:
            self.apply(transitions.handle_broker_unfenced(self.cluster.ctx, broker.id, broker.epoch))

    def shut_down(self) -> None:
        broker = self.image.brokers[self.rng.choice(BROKERS)]
        if not broker.fenced:
            self.apply(
                transitions.handle_broker_in_controlled_shutdown(self.cluster.ctx, broker.id, broker.epoch)
            )
            assert not self.image.led_count(broker.id), "a stopping broker leads (C5)"

    def restart(self) -> None:
        broker_id = self.rng.choice(BROKERS)
        clean = self.rng.random() < 0.5
        self.apply(transitions.handle_broker_shutdown(self.cluster.ctx, broker_id, clean))
        if self.elr and not clean:
            assert not list(self.image.partitions_with_elr_member(broker_id)), "eligible after losing data"
        self.register(broker_id)

    def balance(self) -> None:
        self.apply(balance_leaders(self.cluster.ctx).records)

    def elect(self) -> None:
        if self.rng.random() < 0.5:
            self.apply(elect_unclean_leaders(self.cluster.ctx).records)
        else:
            self.decide(elect_leaders, ElectLeadersRequest(self.rng.choice((0, 1)), None), 2)

    def configure(self) -> None:
        if self.image.topics:
            topic = self.rng.choice(list(self.image.topics.values()))
            key, value = self.rng.choice(
                (
                    ("min.insync.replicas", "2"),
                    ("min.insync.replicas", "1"),
                    ("unclean.leader.election.enable", "true"),
                    ("unclean.leader.election.enable", "false"),
                )
            )
            self.cluster.config(key, value, topic=topic.name)

    def assign_directory(self) -> None:
        broker = self.image.brokers[self.rng.choice(BROKERS)]
        hosted = list(self.image.partitions_of(broker.id))
        if hosted:
            topic_id, index = self.rng.choice(hosted)
            place = self.rng.choice((*broker.directories, directory(50)))
            data = directories_request.TopicData(topic_id, [directories_request.PartitionData(index)])
            request = directories_request.AssignReplicasToDirsRequest(
                broker.id, broker.epoch, [directories_request.DirectoryData(place, [data])]
            )
            self.decide(assign_replicas_to_dirs, request, 0)

    # Checks

    def decide(self, decision: Callable[..., Any], request: Any, version: int, **more: Any) -> None:
        try:
            records = decision(self.cluster.ctx, request, version).records
        except Refusal:
            return
        self.apply(records, **more)

    def apply(self, records: list[VersionedRecord], eligible: set[int] | None = None) -> None:
        """Replay the records one by one, and check each step and its result.

        eligible: the members of a proposed ISR that may join.
        """
        for record in records:
            change = record.message
            newest = record_version(type(change), self.image.metadata_version)
            assert record.version <= newest, f"{change} is newer than the metadata version (C9)"
            before = None
            if isinstance(change, PartitionChangeRecord):
                before = self.image.partition(change.topic_id, change.partition_id)
            self.cluster.apply([record])
            if before is not None:
                after = self.image.partition(change.topic_id, change.partition_id)
                assert after is not None
                self.check_step(before, after, eligible)
        for topic in self.image.topics.values():
            assert self.image.topic_named(topic.name) is topic, "a name without its id (C7)"
            for state in topic.partitions.values():
                self.check(state)
        assert len(self.image.topic_names()) == len(self.image.topics)

    def check_step(self, before: PartitionState, after: PartitionState, eligible: set[int] | None) -> None:
        assert after.partition_epoch == before.partition_epoch + 1, "partition epoch (C4)"
        assert after.leader_epoch in (before.leader_epoch, before.leader_epoch + 1), "leader epoch (C4)"
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch, "another leader in the same leader epoch (C4)"
        if eligible is not None:
            joined = set(after.isr).difference(before.isr)
            assert joined <= eligible, f"stale or inactive brokers {joined} joined the ISR (C3, C5)"
            if before.is_reassigning and not after.is_reassigning:
                assert set(before.adding_replicas) <= set(after.isr), "completed before all were in sync"
                assert not set(before.removing_replicas) & set(after.replicas), "completed with old replicas"
        trusted = {*before.isr, *(eligible or ()), *(before.elr if self.elr else ())}
        if after.leader not in (before.leader, NO_LEADER) and after.leader not in trusted:
            reverted = (
                before.is_reassigning and not after.is_reassigning
            )  # a cancelled reassignment, which is allowed
            assert after.leader_recovery_state == RECOVERING or reverted, "an unclean leader not marked so"

    def check(self, state: PartitionState) -> None:
        assert len(set(state.replicas)) == len(state.replicas) == len(state.directories)
        assert set(state.isr) <= set(state.replicas), "ISR beyond the replicas (C4)"
        assert state.leader == NO_LEADER or state.leader in state.isr, "a leader out of sync (C4)"
        assert state.isr or self.elr, "an empty ISR without ELR"
        assert not set(state.isr) & set(state.elr), "in sync and eligible at once (KIP-966)"
        assert {*state.adding_replicas, *state.removing_replicas} <= set(state.replicas)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_partitions_keep_the_invariants_in_any_history(rng: random.Random) -> None:
    Life(rng).run()


def _mutants() -> Iterator[Any]:
    """Planted faults, each of which replaces one function."""
    real_change = partition_change.partition_change
    real_leadership = partition_edits.leadership
    real_reassigned = reassignment.reassigned

    def any_broker_may_lead(image: Any, **_: Any) -> Any:
        return lambda broker_id, place: True

    def forgets_leaving_replicas(image: Any, **_: Any) -> Any:
        return real_leadership(image)

    def keeps_leader_epoch(*arguments: Any, **more: Any) -> Any:
        change = real_change(*arguments, **more)
        if change is not None and change.isr is not None:
            change.leader = NO_LEADER_CHANGE
        return change

    def never_eligible_forever(partition: Any, isr_: Any, unclean: int) -> Any:
        return tuple(sorted({*partition.elr, *partition.isr}))

    def drops_directories(partition: Any, replicas: Any) -> Any:
        assignment = real_reassigned(partition, replicas)
        return partition_change.Assignment(replicas, assignment.adding, assignment.removing)

    yield pytest.param(isr, "may_join_isr", lambda *_: True, id="a stale broker may join an ISR")
    yield pytest.param(partition_edits, "leadership", any_broker_may_lead, id="a dead broker may lead")
    yield pytest.param(
        partition_edits, "leadership", forgets_leaving_replicas, id="the leaving broker may lead"
    )
    yield pytest.param(
        partition_edits, "partition_change", keeps_leader_epoch, id="an ISR without its leader"
    )
    yield pytest.param(partition_change, "_eligible", never_eligible_forever, id="in sync and eligible")
    yield pytest.param(
        reassignment, "reassigned", drops_directories, id="a leaving replica is dropped at once"
    )
    yield pytest.param(
        partition_change, "completed_reassignment", lambda r, a, d, i: (r, i), id="completed before in sync"
    )


@pytest.mark.parametrize(("module", "name", "replacement"), list(_mutants()))
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, replacement: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, name, replacement)
    for seed in range(60):
        try:
            Life(random.Random(seed)).run()
        except AssertionError:
            return
        except Exception:  # the image refused to replay the record
            return
    pytest.fail("not caught")
