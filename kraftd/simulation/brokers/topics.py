"""The topics of a world's brokers: where they are, and how they are made, moved, and deleted."""

from __future__ import annotations

from typing import Any

from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.simulation.randomness import SeededRandomness
from kraftd.simulation.schedule import SECOND

OFFSETS_TOPIC = "__consumer_offsets"
STEADY, CHANGING = "records", "fleeting"  # the second is deleted and made again
TOPICS_GAP_US = 1 * SECOND


class Topics:
    """See the module. `hosts` and `configs`: the replicas of each partition, and the configs, by name."""

    def __init__(self, traffic: Any) -> None:
        self.traffic = traffic
        self.world = traffic.world
        self.rng: SeededRandomness = traffic.rng
        self.hosts: dict[str, list[tuple[int, ...]]] = {}
        self.configs: dict[str, list[CreatableTopicConfig]] = {}

    def draw_replicas(self, rng: SeededRandomness) -> tuple[int, ...]:
        """The brokers of one partition."""
        brokers = self.traffic.brokers
        if not self.traffic.replicas.is_on:
            return (rng.choice(brokers),)
        return tuple(rng.sample(brokers, self.world.options.replica_count))

    def start(self) -> None:
        self.world.schedule.after(TOPICS_GAP_US, self.see_to)

    def see_to(self) -> None:
        """Make the topics that are missing, and delete one now and then. At rest, elect what else waits for
        leader.imbalance.check.interval.seconds, which is longer than a world lasts.
        """
        if not self.traffic.running:
            return
        world = self.world
        world.schedule.after(TOPICS_GAP_US, self.see_to)
        leader = world.cluster.leader()
        if leader is None or not leader.node.active:
            return
        self.traffic.share_group.see_to_configs(leader)
        known = leader.node.image.topic_names()
        missing = [name for name in self.hosts if name not in known]
        if missing:
            request = CreateTopicsRequest([self._topic(name) for name in missing], 1000)
            world.workload.ask(leader, request, 7, lambda _: None)
        elif not world.healed and self.rng.chance(0.05):
            world.trace.kinds["topic of records deleted"] += 1
            deletion = DeleteTopicsRequest([DeleteTopicState(CHANGING)], (), 1000)
            world.workload.ask(leader, deletion, 6, lambda _: None)
        elif not world.healed and self.traffic.replicas.is_on:
            self._move(leader)
        elif world.healed and self.traffic.replicas.wait_for_last_leader():
            world.workload.ask(leader, ElectLeadersRequest(0, None, 1000), 2, lambda _: None)

    def _move(self, leader: Any) -> None:
        """Reassign a partition, or elect preferred leaders, now and then."""
        rng, ask = self.rng, self.world.workload.ask
        if rng.chance(0.1):
            name = rng.choice((STEADY, OFFSETS_TOPIC, *sorted(self.hosts.keys() - {CHANGING})))
            index, replicas = rng.below(len(self.hosts[name])), self.draw_replicas(rng)
            part = reassign.ReassignablePartition(index, replicas)
            topics = [reassign.ReassignableTopic(name, [part])]
            ask(leader, reassign.AlterPartitionReassignmentsRequest(1000, True, topics), 1, self._reassigned)
        elif rng.chance(0.2):
            ask(leader, ElectLeadersRequest(0, None, 1000), 2, lambda _: None)

    def _reassigned(self, answer: Any) -> None:
        if answer is not None and not answer.error_code and not answer.responses[0].partitions[0].error_code:
            self.world.trace.kinds["replicas reassigned"] += 1

    def _topic(self, name: str) -> CreatableTopic:
        places = [CreatableReplicaAssignment(n, hosts) for n, hosts in enumerate(self.hosts[name])]
        return CreatableTopic(name, -1, -1, places, self.configs[name])

    def __repr__(self) -> str:
        return f"<Topics {sorted(self.hosts)}>"
