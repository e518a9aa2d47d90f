"""Random operations on topics and brokers have the same results in Kafka's controller and in kraftd."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from kraftd.controller.brokers import transitions
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.directories import assign_replicas_to_dirs
from kraftd.controller.partitions.election import balance_leaders, elect_leaders, elect_unclean_leaders
from kraftd.controller.partitions.isr import alter_partition
from kraftd.controller.partitions.reassignment import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.ground.refusal import Refusal
from kraftd.messages import (
    alter_partition_reassignments_request,
    alter_partition_request,
    assign_replicas_to_dirs_request,
    create_partitions_request,
    create_topics_request,
    elect_leaders_request,
    list_partition_reassignments_request,
)
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.metadata_version import allows_elr
from kraftd.metadata.state import TopicState
from kraftd.types import DIRECTORY_LOST
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.error_code import ErrorCode as E
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.controller.cluster import ELR, Cluster, directory
from tests.controller.oracle import ControllerOracle, OracleAnswer
from tests.controller.test_partition_change_oracle import JavaRandom

pytestmark = pytest.mark.kafka

WORLDS = 120
OPERATIONS = 150
NONE = E.NONE
NAMES = ("a", "b", "c.d", "c_d", "e-1", "..", "no/such", "x" * 250, "")
BROKERS = range(6)


KAFKAS_BUGS = (
    # A deleted partition stays in the index by directory if no replica was in sync.
    "existed in isrMembers, but not in the topics map",
    # An election may look at a last known leader that a reassignment has taken away.
    "is not assigned to this partition",
)


class KafkasBug(Exception):
    """Kafka cannot continue in this world, so the comparison ends."""


class SharedRandomness(JavaRandom):
    """The oracle's random numbers. Kafka draws topic ids elsewhere: these are those of the oracle."""

    topic_ids: Iterator[bytes]

    def uuid(self) -> bytes:
        return next(self.topic_ids)


@pytest.fixture(scope="module")
def oracle() -> Iterator[ControllerOracle]:
    oracle = ControllerOracle()
    yield oracle
    oracle.close()


class Match:
    """Two controllers with the same history, which both get random operations."""

    def __init__(self, oracle: ControllerOracle, seed: int) -> None:
        self.rng = random.Random(seed)
        self.oracle = oracle
        self.outcomes: dict[tuple[str, object], int] = {}
        oracle.start(seed)
        level = self.rng.choice((7, 12, 17, 23, 30, 30, 30))
        elr = allows_elr(level) and self.rng.random() < 0.7
        self.shared = SharedRandomness(seed)
        self.cluster = Cluster(
            metadata_version=level, elr=elr, rng=self.shared, num_partitions=2, default_replication_factor=2
        )
        oracle.replay([VersionedRecord(FeatureLevelRecord("metadata.version", level), 0)])
        if elr:
            oracle.replay([VersionedRecord(FeatureLevelRecord(ELR, 1), 0)])
        self.log: list[str] = []
        for broker_id in BROKERS:
            self.register(broker_id)
        self.set_config("min.insync.replicas", self.rng.choice(("1", "2", "3")))

    def set_config(self, key: str, value: str | None, topic: str = "") -> None:
        """Set a config on both sides."""
        record = VersionedRecord(ConfigRecord(2 if topic else 4, topic, key, value), 0)
        self.oracle.replay([record])
        self.cluster.apply([record])

    def register(self, broker_id: int) -> None:
        before = len(self.applied)
        racks = (None, "a", "b")
        self.cluster.broker(
            broker_id,
            rack=self.rng.choice(racks),
            fenced=self.rng.random() < 0.3,
            directories=self.rng.choice((1, 1, 2)),
            epoch=1_000 + self.cluster.image.offset,
        )
        self.oracle.replay(self.applied[before:])

    @property
    def applied(self) -> list[VersionedRecord]:
        return self.cluster.applied

    # Operations

    def some(self, pool: Any, most: int = 3) -> tuple[Any, ...]:
        pool = list(pool)
        return tuple(self.rng.sample(pool, self.rng.randint(min(1, len(pool)), min(most, len(pool)))))

    def broker_id(self) -> int:
        return self.rng.choice(list(self.cluster.image.brokers))

    def any_topic(self) -> TopicState | None:
        topics = list(self.cluster.image.topics.values())
        return self.rng.choice(topics) if topics else None

    def create_topics(self) -> None:
        m = create_topics_request
        names = self.some(NAMES)
        topics = []
        for name in names:
            topic = m.CreatableTopic(
                name, self.rng.choice((-1, 1, 3, 5, 0)), self.rng.choice((-1, 1, 2, 3, 7, 0))
            )
            if self.rng.random() < 0.3:
                topic.num_partitions = self.rng.choice((-1, -1, -1, 2))
                topic.replication_factor = self.rng.choice((-1, -1, -1, 2))
                count = self.rng.choice((2, 2, 3))
                topic.assignments = [
                    m.CreatableReplicaAssignment(
                        self.rng.choice((index, index, index, index + 1)),
                        tuple(self.rng.choices(range(7), k=count))
                        if self.rng.random() < 0.2
                        else tuple(self.rng.sample(BROKERS, count)),
                    )
                    for index in range(self.rng.randint(1, 3))
                ]
            if self.rng.random() < 0.4:
                topic.configs = [
                    m.CreatableTopicConfig(key, value)
                    for key, value in self.some(
                        (
                            ("min.insync.replicas", self.rng.choice(("1", "2", "3", "x"))),
                            ("unclean.leader.election.enable", self.rng.choice(("true", "false"))),
                            ("retention.ms", self.rng.choice(("1", "-2", "86400000", None))),
                            ("no.such", "1"),
                        )
                    )
                ]
            topics.append(topic)
        self.request("create_topics", create_topics, m.CreateTopicsRequest(topics), 7)

    def delete_topic(self) -> None:
        topic = self.any_topic()
        if topic is not None and self.rng.random() < 0.3:
            record = VersionedRecord(RemoveTopicRecord(topic.id), 0)
            self.oracle.replay([record])
            self.cluster.apply([record])

    def create_partitions(self) -> None:
        m = create_partitions_request
        topic = self.any_topic()
        name, present = (topic.name, len(topic.partitions)) if topic else ("none", 0)
        wanted = m.CreatePartitionsTopic(name, present + self.rng.choice((-1, 0, 1, 1, 2)), None)
        if self.rng.random() < 0.4:
            wanted.assignments = [
                m.CreatePartitionsAssignment(tuple(self.rng.sample(BROKERS, self.rng.choice((1, 2, 2, 3)))))
                for _ in range(self.rng.randint(1, 2))
            ]
        # If partitions have different replication factors, Kafka takes that of an arbitrary one.
        factors = {len(partition.replicas) for partition in topic.partitions.values()} if topic else set()
        if present < 12 and len(factors) < 2:
            self.request("create_partitions", create_partitions, m.CreatePartitionsRequest([wanted], 1), 3)

    def alter_partition(self) -> None:
        m = alter_partition_request
        image = self.cluster.image
        version = self.rng.choice((2, 3))
        sender = self.broker_id()
        hosted = image.partitions_of(sender)
        led = [(id_, index) for id_, index in hosted if image.topics[id_].partitions[index].leader == sender]
        topics = []
        for topic_id, index in self.some(led) if led else []:
            partition = image.topics[topic_id].partitions[index]
            isr = {*self.some(partition.replicas, 6), sender}
            if self.rng.random() < 0.1:
                isr = set(self.some(range(7)))
            epochs = {b: (image.brokers[b].epoch if b in image.brokers else 5) for b in isr}
            topics.append(
                m.TopicData(
                    self.rng.choice((topic_id,) * 20 + (bytes(16), b"\7" * 16)),
                    [
                        m.PartitionData(
                            index + (self.rng.random() < 0.03) * 50,
                            partition.leader_epoch + self.rng.choice((0,) * 18 + (-1, 1)),
                            tuple(sorted(isr)) if version == 2 else (),
                            []
                            if version == 2
                            else [
                                m.BrokerState(b, self.rng.choice((epochs[b],) * 12 + (-1, epochs[b] - 1)))
                                for b in sorted(isr)
                            ],
                            partition.leader_recovery_state
                            if self.rng.random() < 0.6
                            else self.rng.choice((0, 0, 1)),
                            partition.partition_epoch + self.rng.choice((0,) * 18 + (-1, 1)),
                        )
                    ],
                )
            )
        if not topics:
            return  # Kafka answers before the class behind the oracle is called
        epoch = image.brokers[sender].epoch + (self.rng.random() < 0.05)
        sender += 100 * (self.rng.random() < 0.02)
        self.request(
            "alter_partition", alter_partition, m.AlterPartitionRequest(sender, epoch, topics), version
        )

    def elect_leaders(self) -> None:
        m = elect_leaders_request
        topics = None
        if self.rng.random() < 0.8:
            topic = self.any_topic()
            name = topic.name if topic else "none"
            topics = [m.TopicPartitions(name, self.some(range(4)))]
        self.request(
            "elect_leaders", elect_leaders, m.ElectLeadersRequest(self.rng.choice((0, 0, 1, 1, 2)), topics), 2
        )

    def reassign(self) -> None:
        m = alter_partition_reassignments_request
        topic = self.any_topic()
        name, count = (topic.name, len(topic.partitions)) if topic else ("none", 1)
        partitions = []
        for index in self.some(range(count + 1)):
            replicas = self.rng.choice(
                (
                    None,
                    tuple(self.rng.sample(BROKERS, 2)),
                    tuple(self.rng.sample(BROKERS, 3)),
                    (1, 1),
                    (),
                    (9,),
                )
            )
            partitions.append(m.ReassignablePartition(index, replicas))
        version = self.rng.choice((0, 1))
        may_change = version == 0 or self.rng.random() < 0.6
        wanted = m.AlterPartitionReassignmentsRequest(
            60_000, may_change, [m.ReassignableTopic(name, partitions)]
        )
        self.request("reassign", alter_partition_reassignments, wanted, version)

    def list_reassignments(self) -> None:
        m = list_partition_reassignments_request
        topics = None
        topic = self.any_topic()
        if topic is not None and self.rng.random() < 0.5:
            topics = [m.ListPartitionReassignmentsTopics(topic.name, self.some(range(4)))]
        wanted = m.ListPartitionReassignmentsRequest(60_000, topics)
        self.request("list_reassignments", list_partition_reassignments, wanted, 0)

    def assign_directories(self) -> None:
        m = assign_replicas_to_dirs_request
        image = self.cluster.image
        broker = image.brokers[self.broker_id()]
        hosted = list(image.partitions_of(broker.id))
        places = self.some((*broker.directories, *broker.directories, DIRECTORY_LOST, directory(99)), 2)
        named: set[tuple[bytes, int]] = set()
        directories = []
        for place in places:
            topics = []
            for topic_id, index in self.some(hosted) if hosted else ((b"\7" * 16, 0),):
                index += (self.rng.random() < 0.05) * 30
                if (topic_id, index) not in named:
                    named.add((topic_id, index))
                    topics.append(m.TopicData(topic_id, [m.PartitionData(index)]))
            directories.append(m.DirectoryData(place, topics))
        wanted = m.AssignReplicasToDirsRequest(broker.id, broker.epoch, directories)
        self.request("assign_directories", assign_replicas_to_dirs, wanted, 0)

    def fence(self) -> None:
        broker = self.broker_id()
        self.records(f"fence {broker}", lambda ctx: transitions.handle_broker_fenced(ctx, broker))

    def unfence(self) -> None:
        broker = self.cluster.image.brokers[self.broker_id()]
        if broker.in_controlled_shutdown:
            self.register(broker.id)  # a broker comes back from a shutdown only as a new incarnation
            broker = self.cluster.image.brokers[broker.id]
        self.records(
            f"unfence {broker.id}",
            lambda ctx: transitions.handle_broker_unfenced(ctx, broker.id, broker.epoch),
        )

    def shut_down(self) -> None:
        broker = self.cluster.image.brokers[self.broker_id()]
        if not broker.fenced:
            self.records(
                f"shut_down {broker.id}",
                lambda ctx: transitions.handle_broker_in_controlled_shutdown(ctx, broker.id, broker.epoch),
            )

    def restart(self) -> None:
        broker = self.broker_id()
        clean = self.rng.random() < 0.5
        self.records(
            f"restart {broker} {'clean' if clean else 'unclean'}",
            lambda ctx: transitions.handle_broker_shutdown(ctx, broker, clean),
        )
        self.register(broker)

    def unregister(self) -> None:
        broker = self.cluster.image.brokers[self.broker_id()]
        if self.rng.random() < 0.3:
            self.records(
                f"unregister {broker.id}",
                lambda ctx: transitions.handle_broker_unregistered(ctx, broker.id, broker.epoch),
            )
            self.register(broker.id)

    def lose(self) -> None:
        broker = self.cluster.image.brokers[self.broker_id()]
        lost = self.some((*broker.directories, directory(99)), 1)
        if broker.directories and self.rng.random() < 0.4:
            self.records(
                f"lose {broker.id} " + " ".join(place.hex() for place in lost),
                lambda ctx: transitions.handle_directories_offline(ctx, broker.id, broker.epoch, lost),
            )

    def balance(self) -> None:
        self.records("balance", lambda ctx: balance_leaders(ctx).records)

    def elect_uncleanly(self) -> None:
        self.records("elect_uncleanly", lambda ctx: elect_unclean_leaders(ctx).records)

    def configure(self) -> None:
        topic = self.any_topic()
        name = topic.name if topic and self.rng.random() < 0.7 else ""
        key = self.rng.choice(("min.insync.replicas", "unclean.leader.election.enable"))
        self.set_config(key, self.rng.choice(("1", "2") if key[0] == "m" else ("true", "false")), name)

    # Comparison

    def request(self, name: str, decide: Callable[..., Decision[Any]], request: Any, version: int) -> None:
        theirs = self.oracle.run(f"{name} {version} {encode_bytes(request, version).hex()}")
        self.learn(name, repr(request), theirs)
        try:
            ours = decide(self.cluster.ctx, request, version)
        except Refusal as refusal:
            assert theirs.error == refusal.code.name, self.story()
            self.count(name, refusal.code.name)
            return
        assert theirs.error is None, self.story()
        expected = decode(type(ours.answer), version, theirs.answer or b"")
        if E.UNKNOWN_SERVER_ERROR in error_codes(msgspec.to_builtins(expected)):
            raise KafkasBug  # the last of the bugs above, caught for one partition
        self.compare(ours.records, theirs)
        sent = decode(type(ours.answer), version, encode_bytes(ours.answer, version))
        assert plain(sent) == plain(expected), self.story()
        for code in error_codes(msgspec.to_builtins(ours.answer)):
            self.count(name, code)

    def records(self, line: str, decide: Callable[..., list[VersionedRecord]]) -> None:
        theirs = self.oracle.run(line)
        self.learn(line, "", theirs)
        ours = decide(self.cluster.ctx)
        assert theirs.error is None, self.story()
        self.count(line.split()[0], len(ours) > 0)
        self.compare(ours, theirs)

    def learn(self, line: str, request: str, theirs: OracleAnswer) -> None:
        self.shared.topic_ids = iter(
            [record.message.topic_id for record in theirs.records if isinstance(record.message, TopicRecord)]
        )
        self.log.append(f"{line} {request}\n    -> {theirs.error or theirs.records}")
        if theirs.error is not None and any(bug in theirs.error for bug in KAFKAS_BUGS):
            raise KafkasBug

    def compare(self, ours: list[VersionedRecord], theirs: OracleAnswer) -> None:
        mine = sorted(encode_record(record) for record in ours)
        expected = sorted(encode_record(record) for record in theirs.records)
        assert mine == expected, f"{self.story()}\n  kraftd: {ours}"
        self.cluster.apply(ours)

    def count(self, name: str, outcome: object) -> None:
        self.outcomes[name, outcome] = self.outcomes.get((name, outcome), 0) + 1

    def story(self) -> str:
        return "\n".join(self.log[-3:])


def plain(message: Any) -> Any:
    """An answer without its texts of errors and without the order of its lists: both may differ."""
    value = msgspec.to_builtins(message)

    def strip(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: strip(item) for key, item in node.items() if key != "error_message"}
        if isinstance(node, list):
            return sorted((strip(item) for item in node), key=repr)
        return node

    return strip(value)


def error_codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        if "error_code" in value:
            yield value["error_code"]
        for item in value.values():
            yield from error_codes(item)
    elif isinstance(value, list):
        for item in value:
            yield from error_codes(item)


OPERATIONS_BY_WEIGHT = {
    "create_topics": 4,
    "delete_topic": 2,
    "create_partitions": 3,
    "alter_partition": 14,
    "elect_leaders": 4,
    "reassign": 8,
    "list_reassignments": 2,
    "assign_directories": 3,
    "fence": 5,
    "unfence": 9,
    "shut_down": 3,
    "restart": 3,
    "unregister": 1,
    "lose": 2,
    "balance": 2,
    "elect_uncleanly": 2,
    "configure": 3,
}


MUST_OCCUR = {
    *(("create_topics", code) for code in (NONE, E.INVALID_TOPIC_EXCEPTION, E.TOPIC_ALREADY_EXISTS)),
    *(("create_topics", code) for code in (E.INVALID_PARTITIONS, E.INVALID_REPLICATION_FACTOR)),
    *(
        ("create_topics", code)
        for code in (E.INVALID_REPLICA_ASSIGNMENT, E.INVALID_CONFIG, E.INVALID_REQUEST)
    ),
    *(("create_partitions", code) for code in (NONE, E.INVALID_PARTITIONS, E.INVALID_REPLICA_ASSIGNMENT)),
    *(
        ("alter_partition", code)
        for code in (NONE, E.NOT_CONTROLLER, E.FENCED_LEADER_EPOCH, E.UNKNOWN_TOPIC_ID)
    ),
    *(
        ("alter_partition", code)
        for code in (E.INVALID_UPDATE_VERSION, E.INVALID_REQUEST, E.INELIGIBLE_REPLICA)
    ),
    *(("alter_partition", code) for code in (E.NEW_LEADER_ELECTED, "STALE_BROKER_EPOCH")),
    *(("elect_leaders", code) for code in (NONE, E.ELECTION_NOT_NEEDED, E.PREFERRED_LEADER_NOT_AVAILABLE)),
    ("elect_leaders", E.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    *(("reassign", code) for code in (NONE, E.NO_REASSIGNMENT_IN_PROGRESS, E.INVALID_REPLICATION_FACTOR)),
    *(("assign_directories", code) for code in (NONE, E.UNKNOWN_TOPIC_ID)),
    *((name, True) for name in ("fence", "unfence", "shut_down", "restart", "lose", "balance")),
    ("elect_uncleanly", True),
}


def test_every_operation_has_the_result_of_kafkas_controller(oracle: ControllerOracle) -> None:
    outcomes: dict[tuple[str, object], int] = {}
    for seed in range(WORLDS):
        match = Match(oracle, seed)
        names = match.rng.choices(
            list(OPERATIONS_BY_WEIGHT), weights=list(OPERATIONS_BY_WEIGHT.values()), k=OPERATIONS
        )
        for name in ("create_topics", "create_topics", *names):
            try:
                getattr(match, name)()
            except KafkasBug:
                break
        for key, count in match.outcomes.items():
            outcomes[key] = outcomes.get(key, 0) + count
    assert not MUST_OCCUR - outcomes.keys(), f"never seen: {MUST_OCCUR - outcomes.keys()}"
