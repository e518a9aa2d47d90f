"""Random requests to a controller: most make sense in the state of its log, some do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kraftd.messages import (
    add_raft_voter_request,
    alter_configs_request,
    alter_partition_reassignments_request,
    alter_partition_request,
    assign_replicas_to_dirs_request,
    begin_quorum_epoch_request,
    broker_registration_request,
    controller_registration_request,
    create_partitions_request,
    create_topics_request,
    delete_topics_request,
    describe_configs_request,
    describe_quorum_request,
    elect_leaders_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    incremental_alter_configs_request,
    list_partition_reassignments_request,
    update_features_request,
    update_raft_voter_request,
    vote_request,
)
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.image import Image
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.api import valid_versions
from kraftd.wire.codec import encode_bytes
from kraftd.wire.errors import EncodeError
from kraftd.wire.frames import encode_request
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.cluster import CONTROLLER_ID
from tests.kafka.differential import access_requests
from tests.kafka.differential.pair import DIRECTORY_ID

T = TypeVar("T")
BROKERS = (0, 1, 2, 3, 4)
TOPICS = ("a", "b", "c.d", "c_d", "e", "f")
BAD_TOPICS = (
    "",
    ".",
    "..",
    "../x",
    "a b",
    "nul\x00",
    "x" * 249,
    "x" * 250,
    "ä",
    METADATA_TOPIC,
    "__consumer_offsets",
)
STRANGE_ID = b"\x55" * 16
_CONFIGS = (
    ("cleanup.policy", ("compact", "delete", "compact,delete", "", "nonsense", None)),
    ("retention.ms", ("1000", "-1", "-2", "x", None)),
    ("min.insync.replicas", ("1", "2", "0", None)),
    ("unclean.leader.election.enable", ("true", "false", "maybe")),
    ("max.message.bytes", ("1000", "-1", "99999999999")),
    ("compression.type", ("zstd", "lz5")),
    ("no.such.config", ("1",)),
    ("leader.replication.throttled.replicas", ("*", "0:1", "0:1,1:2", "q")),
    ("segment.bytes", ("1048576", "13")),
    ("log.retention.ms", ("5", "x")),
    ("follower.replication.throttled.rate", ("5", "-1")),
    ("advertised.listeners", ("PLAINTEXT://x:1", "x")),
    ("num.io.threads", ("6", "0")),  # Kafka refuses less than half or more than twice as many
    ("message.format.version", ("3.0",)),
)  # fmt: skip


def directories(broker_id: int) -> tuple[bytes, ...]:
    """A broker's log directories: even brokers have one, odd ones two."""
    count = 1 + broker_id % 2
    return tuple(bytes([0x30 + broker_id, number]) + b"\x07" * 14 for number in range(1, count + 1))


class RandomRequests:
    """Makes random requests for a cluster whose image the caller keeps current."""

    forwarded: tuple[str, ...] = ("alice", "alice", "bob")  # the principals of requests in Envelopes
    begins_at = 0  # the offset that fetches of the whole log begin at

    def __init__(self, seed: int, image: Image, cluster_id: str) -> None:
        self.random, self.image, self.cluster_id = random.Random(seed), image, cluster_id
        self.incarnations: dict[int, int] = dict.fromkeys(BROKERS, 0)
        self.log_end = 0
        self.batch_starts = [0]  # offsets that a replica may report: Kafka treats others arbitrarily

    def __repr__(self) -> str:
        return f"<RandomRequests on {self.image!r}>"

    # -- random numbers
    def odds(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def some(self, options: Sequence[T], most: int) -> list[T]:
        return self.random.choices(options, k=self.random.randint(1, most)) if options else []

    def near(self, number: int, chance: float = 0.15) -> int:
        """Mostly the number itself, else another one."""
        return number if not self.odds(chance) else number + self.one((-1, 1, 1000, -number - 1))

    def timeout_ms(self) -> int:
        """A timeout that is nearly always sufficient."""
        return 30_000 if self.odds(0.97) else self.one((0, -1, -(2**31)))

    # -- what there is
    def broker(self) -> int:
        return self.one(BROKERS) if self.odds(0.95) else self.one((-1, 7, CONTROLLER_ID))

    def broker_epoch(self, broker_id: int) -> int:
        known = self.image.brokers.get(broker_id)
        return self.near(known.epoch if known else -1, 0.1)

    def topic(self) -> str:
        return self.one(TOPICS) if self.odds(0.95) else self.one((*BAD_TOPICS, "missing"))

    def topic_id(self) -> bytes:
        topics = list(self.image.topics)
        return self.one(topics) if topics and self.odds(0.95) else self.one((STRANGE_ID, bytes(16)))

    def replicas(self) -> tuple[int, ...]:
        if self.odds(0.05):
            return self.one(((), (1, 1), (7,), (-1,), (1, 2, 2)))
        alive = [b for b, state in self.image.brokers.items() if not state.fenced] or list(BROKERS)
        pool = alive if self.odds(0.9) else list(BROKERS)
        return tuple(self.random.sample(pool, min(len(pool), self.random.randint(1, 3))))

    # -- requests
    def next(self, kind: Callable[[Any], Any] | None = None) -> tuple[Message, int]:
        """A request of that or any kind, and a version in which it can be encoded."""
        while True:
            request = (kind or self.one(self.WEIGHTED))(self)
            first, last = valid_versions(api_key(request))
            version = last if self.odds(0.5) else self.random.randint(first, last)
            try:
                encode_bytes(request, version)
            except EncodeError:
                continue
            return request, version

    def register_broker(self) -> Message:
        m = broker_registration_request
        broker_id = self.broker()
        if self.odds(0.5):
            self.incarnations[broker_id] = self.incarnations.get(broker_id, 0) + 1
        ranges = dict(supported_features())
        if self.odds(0.1):
            name = self.one((*ranges, "strange.version"))
            ranges[name] = self.one(((0, 0), (1, 1), (2, 3), (30, 30), (7, 20), (5, 4), (31, 35)))
        if self.odds(0.05):
            ranges.pop(self.one(list(ranges)))
        dirs = directories(broker_id) if broker_id in BROKERS else ()
        if self.odds(0.1):
            dirs = self.one(((), (STRANGE_ID,), directories(1), (*dirs, *dirs), (bytes(16),)))
        known = self.image.brokers.get(broker_id)
        return m.BrokerRegistrationRequest(
            broker_id,
            self.cluster_id if self.odds(0.95) else self.one(("", "wrong")),
            b"\x44" * 12 + bytes([0, 0, broker_id & 0x7F, self.incarnations.get(broker_id, 0) & 0xFF]),
            self.listeners(broker_id),
            [m.Feature(name, *span) for name, span in ranges.items()],
            self.one((None, "r1", "r2", "")),
            self.odds(0.03),
            dirs,
            self.one((-1, known.epoch if known else 5, 0, 10**6)),
        )

    def listeners(self, broker_id: int) -> list[Any]:
        """No ports or protocols that do not exist: at those Kafka's controller gives up its leadership."""
        m = broker_registration_request
        own = m.Listener("PLAINTEXT", "localhost", 9000 + broker_id)
        return [own] if self.odds(0.95) else self.one(([], [own, m.Listener("SSL", "h", 1, 1)], [own, own]))

    def heartbeat(self) -> Message:
        broker_id = self.broker()
        known = self.image.brokers.get(broker_id)
        own = directories(broker_id) if broker_id in BROKERS else ()
        behind = self.odds(0.15)
        offset = self.one((-1, 0, 1)) if behind else max(self.log_end - 1, known.epoch if known else 0)
        return BrokerHeartbeatRequest(
            broker_id,
            self.broker_epoch(broker_id),
            offset,
            self.odds(0.12),
            self.odds(0.08),
            () if self.odds(0.93) else self.one((own[:1], own, (STRANGE_ID,), (bytes(16),))),
            None if self.odds(0.9) else self.one(((), own[:1], own, (STRANGE_ID,))),
        )

    def unregister_broker(self) -> Message:
        return UnregisterBrokerRequest(self.broker())

    def create_topics(self) -> Message:
        m = create_topics_request
        topics = []
        for _ in range(self.random.randint(0, 3)):
            name = self.topic()
            if self.odds(0.9):
                count = self.random.randint(1, 4)
                width = self.random.randint(1, 3)
                pool = list(BROKERS) if self.odds(0.1) else [
                    b for b, state in self.image.brokers.items() if not state.fenced
                ]  # fmt: skip
                rows = [
                    m.CreatableReplicaAssignment(
                        index, tuple(self.random.sample(pool, min(width, len(pool))))
                    )
                    for index in range(count)
                ]
                if self.odds(0.1):
                    self.one(rows).broker_ids = self.replicas()
                if self.odds(0.05):
                    self.one(rows).partition_index = self.one((-1, 9, 0))
                shape = (-1, -1) if self.odds(0.95) else self.one(((1, -1), (-1, 1), (count, width)))
                topic = m.CreatableTopic(name, *shape, rows)
            else:  # never placed: placement is random
                wrong = self.one(((0, 1), (1, 0), (-2, 1), (1, -2), (1, 9), (10001, 1)))
                topic = m.CreatableTopic(name, *wrong)
            if self.odds(0.3):
                topic.configs = [m.CreatableTopicConfig(*pair) for pair in self.configs()]
            topics.append(topic)
        return m.CreateTopicsRequest(topics, self.timeout_ms(), self.odds(0.1))

    def delete_topics(self) -> Message:
        m = delete_topics_request
        if self.odds(0.3):
            return m.DeleteTopicsRequest([], tuple(self.some((*TOPICS, "missing", ""), 2)), self.timeout_ms())
        states = []
        for _ in range(self.random.randint(0, 2)):
            by_id = m.DeleteTopicState(None, self.topic_id())
            by_name = m.DeleteTopicState(self.topic())
            both = m.DeleteTopicState(self.topic(), self.topic_id())
            states.append(self.one((by_id, by_name, by_name, both, m.DeleteTopicState())))
        return m.DeleteTopicsRequest(states, (), self.timeout_ms())

    def create_partitions(self) -> Message:
        m = create_partitions_request
        topics = []
        for _ in range(self.random.randint(0, 2)):
            name = self.topic()
            known = self.image.topic_named(name)
            have = len(known.partitions) if known else 1
            widths = {len(state.replicas) for state in known.partitions.values()} if known else {1}
            if len(widths) > 1:
                continue  # Kafka's hashing decides which of them counts
            (width,) = widths
            count = have + self.one((0, 1, 1, 2, -1, -have))
            rows = [
                m.CreatePartitionsAssignment(tuple(self.random.sample(BROKERS, width)))
                for _ in range(max(0, count - have) + self.one((0, 0, 0, 0, 1)))
            ]
            if rows and self.odds(0.1):
                rows[-1].broker_ids = self.replicas()
            if rows or count <= have:
                topics.append(m.CreatePartitionsTopic(name, count, rows if rows or self.odds(0.5) else None))
        return m.CreatePartitionsRequest(topics, self.timeout_ms(), self.odds(0.1))

    def alter_partition(self) -> Message:
        m = alter_partition_request
        topic_id = self.topic_id()
        topic = self.image.topic(topic_id)
        partitions = []
        sender = self.broker()
        for index, state in list((topic.partitions if topic else {}).items()):
            if self.odds(0.3):
                continue
            if state.leader >= 0 and self.odds(0.9):
                sender = state.leader
            isr = list(state.isr)
            for replica in state.replicas:
                if self.odds(0.4):
                    isr.remove(replica) if replica in isr else isr.append(replica)
            if self.odds(0.1):
                isr = list(self.replicas())
            if state.leader in state.replicas and state.leader not in isr and self.odds(0.9):
                isr.append(state.leader)
            data = m.PartitionData(
                index if self.odds(0.97) else 77,
                self.near(state.leader_epoch, 0.08),
                leader_recovery_state=self.one((0, 0, 0, 0, 0, 1)),
                partition_epoch=self.near(state.partition_epoch, 0.08),
            )
            if self.odds(0.6):
                data.new_isr_with_epochs = [
                    m.BrokerState(b, -1 if self.odds(0.1) else self.broker_epoch(b)) for b in isr
                ]
            else:
                data.new_isr = tuple(isr)
            partitions.append(data)
        return m.AlterPartitionRequest(
            sender, self.broker_epoch(sender), [m.TopicData(topic_id, partitions)] * (not self.odds(0.03))
        )

    def elect_leaders(self) -> Message:
        m = elect_leaders_request
        topics = [
            m.TopicPartitions(self.topic(), tuple(self.some((0, 1, 2, 3, 9, -1), 3)) * self.one((1, 1, 1, 0)))
            for _ in range(self.random.randint(0, 2))
        ]
        kind = self.one((0, 0, 0, 1, 1, 2, -1))
        return m.ElectLeadersRequest(kind, None if self.odds(0.2) else topics, self.timeout_ms())

    def reassign(self) -> Message:
        m = alter_partition_reassignments_request
        topics = []
        for name in dict.fromkeys(self.topic() for _ in range(self.random.randint(0, 2))):
            moves = [
                m.ReassignablePartition(index, None if self.odds(0.3) else self.replicas())
                for index in self.random.sample((0, 1, 2, 9, -1), self.random.randint(1, 2))
            ]
            cut = self.one((0, 1)) if self.odds(0.1) else len(moves)  # one topic, named twice
            topics += [
                m.ReassignableTopic(name, part) for part in (moves[:cut], moves[cut:]) if part or cut == 0
            ]
        return m.AlterPartitionReassignmentsRequest(self.timeout_ms(), self.odds(0.8), topics)

    def list_reassignments(self) -> Message:
        m = list_partition_reassignments_request
        topics = [
            m.ListPartitionReassignmentsTopics(self.topic(), tuple(self.some((0, 1, 2, 9), 2)))
            for _ in range(self.random.randint(0, 2))
        ]
        return m.ListPartitionReassignmentsRequest(self.timeout_ms(), None if self.odds(0.5) else topics)

    def configs(self) -> list[tuple[str, str | None]]:
        chosen = self.random.sample(_CONFIGS, self.random.randint(1, 2))
        named_twice = chosen[:1] if self.odds(0.05) else []
        return [(name, self.one(values)) for name, values in (*chosen, *named_twice)]

    def resources(self) -> list[tuple[int, str]]:
        """Resources with configs, seldom any of them twice."""
        drawn = [self.resource() for _ in range(self.random.randint(0, 2))]
        if self.odds(0.05):
            drawn *= 2
        return drawn

    def resource(self) -> tuple[int, str]:
        return self.one(
            (
                (2, self.topic()),
                (2, self.topic()),
                (2, self.topic()),
                (4, str(self.broker())),
                (4, ""),
                (4, "x"),
                (4, str(CONTROLLER_ID)),
                (8, "1"),
                (16, "metrics"),
                (32, "group"),
                (99, "x"),
                (0, "y"),
            )
        )

    def incremental_alter_configs(self) -> Message:
        m = incremental_alter_configs_request
        resources = []
        for resource in self.resources():
            changes = [
                m.AlterableConfig(name, self.one((0, 0, 0, 1, 2, 3)), value) for name, value in self.configs()
            ]
            changes = [c for c in changes if c.value is not None or c.config_operation in (0, 1)]
            resources.append(m.AlterConfigsResource(*resource, changes))
        return m.IncrementalAlterConfigsRequest(resources, self.odds(0.1))

    def alter_configs(self) -> Message:
        """No resource of an unknown type twice in a request: Kafka's controller would never answer."""
        m = alter_configs_request
        drawn = self.resources()
        if any(type in (0, 99) for type, _ in drawn):
            drawn = list(dict.fromkeys(drawn))
        resources = [
            m.AlterConfigsResource(*resource, [m.AlterableConfig(*pair) for pair in self.configs()])
            for resource in drawn
        ]
        return m.AlterConfigsRequest(resources, self.odds(0.1))

    def describe_configs(self) -> Message:
        m = describe_configs_request
        names = ("retention.ms", "min.insync.replicas", "node.id", "listeners", "no.such", "log.dirs")
        resources = [
            m.DescribeConfigsResource(
                *self.resource(), None if self.odds(0.4) else tuple(self.some(names, 3))
            )
            for _ in range(self.random.randint(0, 2))
        ]
        return m.DescribeConfigsRequest(resources, self.odds(0.5), False)

    def allocate_producer_ids(self) -> Message:
        broker_id = self.broker()
        return AllocateProducerIdsRequest(broker_id, self.broker_epoch(broker_id))

    def assign_replicas_to_dirs(self) -> Message:
        m = assign_replicas_to_dirs_request
        broker_id = self.broker()
        own = directories(broker_id) if broker_id in BROKERS else ()
        assigned = []
        for directory in self.some((*own, *own, STRANGE_ID, bytes(16), b"\0" * 15 + b"\1"), 2):
            topics = [
                m.TopicData(
                    self.topic_id(), [m.PartitionData(i) for i in self.some((0, 0, 1, 1, 2, 2, 9, -1), 2)]
                )
                for _ in range(self.random.randint(0, 2))
            ]
            assigned.append(m.DirectoryData(directory, topics))
        return m.AssignReplicasToDirsRequest(broker_id, self.broker_epoch(broker_id), assigned)

    def update_features(self) -> Message:
        m = update_features_request
        names = (*supported_features(), "strange.version")
        updates = []
        for name in self.some(names, 2) if self.odds(0.97) else ():
            levels = (25, 26, 29, 30, 31, 6, 0, -1) if name == "metadata.version" else (0, 1, 1, 2, 3, -1)
            level, kind = self.one(levels), self.one((1, 1, 2, 3, 0, 9))
            if name == "metadata.version" and 7 <= level < 30 and kind in (2, 3):
                kind = 1  # kraftd downgrades if no metadata is lost
            updates.append(m.FeatureUpdateKey(name, level, self.odds(0.2), kind))
        if any(update.feature == "kraft.version" for update in updates):
            del updates[1:]  # Kafka's changes it even if it refuses the other update
        return m.UpdateFeaturesRequest(self.timeout_ms(), updates, self.odds(0.7))

    def describe_cluster(self) -> Message:
        return DescribeClusterRequest(False, self.one((1, 2, 2, 0, 3)), self.odds(0.5))

    def describe_quorum(self) -> Message:
        m = describe_quorum_request
        name = self.one((METADATA_TOPIC, METADATA_TOPIC, "x", ""))
        partitions = [m.PartitionData(self.one((0, 0, 0, 1))) for _ in range(self.one((0, 1, 1, 1, 1, 2)))]
        return m.DescribeQuorumRequest([m.TopicData(name, partitions)] * self.one((0, 1, 1, 1, 1, 2)))

    def api_versions(self) -> Message:
        return ApiVersionsRequest(
            *self.one((("a", "1"), ("", "1"), ("a-b.c", "1.2-x"), ("a b", "1"), ("-a", "1")))
        )

    def fetch(self) -> Message:
        m = fetch_request
        replica_id = self.one((50, 51, -1, -2))
        by_name = self.odds(0.4)
        topics = []
        for _ in range(self.one((1, 1, 1, 1, 1, 1, 0, 2))):
            name = METADATA_TOPIC if by_name else ""
            topic_id = bytes(16) if by_name else METADATA_TOPIC_ID
            if self.odds(0.05):
                name, topic_id = ("x", bytes(16)) if by_name else ("", STRANGE_ID)
            partitions = [
                m.FetchPartition(
                    0 if self.odds(0.95) else 1,
                    1 if self.odds(0.8) else self.one((-1, 0, 2)),
                    self.one((self.begins_at, *[self.log_end] * 3, *self.some(self.batch_starts, 3)))
                    if self.odds(0.85)
                    else self.one((self.log_end + 5, -1)),
                    1 if self.odds(0.8) else self.one((-1, 0, 2)),
                    -1,
                    self.one((0, 1, 1000, 1 << 20)),
                    self.one((bytes(16), STRANGE_ID, DIRECTORY_ID)),
                    self.one((2**63 - 1, -1, 0, self.log_end)),
                )
                for _ in range(self.one((1, 1, 1, 1, 1, 0, 2)))
            ]
            topics.append(m.FetchTopic(name, topic_id, partitions))
        request = m.FetchRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong" if self.odds(0.2) else None)),
            max_wait_ms=self.one((0, 5, 20)),
            min_bytes=self.one((0, 1, 100000)),
            max_bytes=self.one((0, 1, 300, 1 << 20, 2**31 - 1)),
            session_id=self.one((0, 0, 0, 5)),
            session_epoch=self.one((-1, -1, -1, 0, 3)),
            topics=topics,
        )
        if self.odds(0.5):
            request.replica_id = replica_id
        else:
            request.replica_state = m.ReplicaState(replica_id, self.one((-1, -1, 3)))
        return request

    def fetch_snapshot(self) -> Message:
        m = fetch_snapshot_request
        partition = m.PartitionSnapshot(
            self.one((0, 0, 0, 1)),
            self.one((1, 1, 1, 0, 2, -1)),
            m.SnapshotId(self.one((0, 1, self.log_end)), self.one((0, 1, 2))),
            self.one((0, 0, 10, -1, 10**6)),
        )
        topics = [m.TopicSnapshot(self.one((METADATA_TOPIC, METADATA_TOPIC, "x")), [partition])]
        cluster_id = self.one((None, self.cluster_id, "wrong"))
        return m.FetchSnapshotRequest(cluster_id, self.one((50, -1)), self.one((0, 1, 2**31 - 1)), topics)

    def vote(self) -> Message:
        """Never of a higher epoch: it would end the leadership, at different times on each side."""
        m = vote_request
        data = m.PartitionData(
            self.one((0, 0, 0, 1)),
            self.one((1, 1, 0)),
            self.one((50, 51)),
            STRANGE_ID,
            self.one((bytes(16), DIRECTORY_ID, STRANGE_ID)),
            self.one((0, 1)),
            self.one((0, self.log_end)),
            self.odds(0.5),
        )
        topics = [m.TopicData(self.one((METADATA_TOPIC, METADATA_TOPIC, METADATA_TOPIC, "x")), [data])]
        return m.VoteRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong")),
            self.one((CONTROLLER_ID, -1, 50)),
            topics * self.one((0, 1, 1, 1, 1)),
        )

    def begin_quorum_epoch(self) -> Message:
        m = begin_quorum_epoch_request
        data = m.PartitionData(self.one((0, 0, 1)), self.one((bytes(16), DIRECTORY_ID, STRANGE_ID)), 50, 0)
        topics = [m.TopicData(self.one((METADATA_TOPIC, METADATA_TOPIC, "x")), [data])]
        return m.BeginQuorumEpochRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong")),
            self.one((CONTROLLER_ID, -1, 50)),
            topics * self.one((0, 1, 1, 1, 1)),
            [m.LeaderEndpoint("CONTROLLER", "localhost", 1)],
        )

    def end_quorum_epoch(self) -> Message:
        m = end_quorum_epoch_request
        data = m.PartitionData(self.one((0, 0, 1)), 50, 0, (), [])
        topics = [m.TopicData(self.one((METADATA_TOPIC, METADATA_TOPIC, "x")), [data])]
        return m.EndQuorumEpochRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong")),
            topics * self.one((0, 1, 1, 1, 1)),
            [m.LeaderEndpoint("CONTROLLER", "localhost", 1)],
        )

    def register_controller(self) -> Message:
        """Of another controller: on its own registration a controller acts by itself."""
        m = controller_registration_request
        ranges = dict(supported_features())
        if self.odds(0.1):
            ranges[self.one((*ranges, "strange.version"))] = self.one(((0, 0), (1, 1), (7, 20)))
        return m.ControllerRegistrationRequest(
            self.one((CONTROLLER_ID + 1, CONTROLLER_ID + 2, 1, -1)),
            bytes([0x66]) * 15 + bytes([self.random.randrange(3)]),
            self.odds(0.1),
            [m.Listener("CONTROLLER", "localhost", 9999, 0)] * (not self.odds(0.1)),
            [m.Feature(name, *span) for name, span in ranges.items()],
        )

    def add_voter(self) -> Message:
        """No process listens at the new voter's address."""
        m = add_raft_voter_request
        listeners = [m.Listener("CONTROLLER", "127.0.0.1", 1)]
        if self.odds(0.2):
            listeners = self.one(([], [m.Listener("OTHER", "127.0.0.1", 1)]))
        return m.AddRaftVoterRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong")),
            200,
            self.one((CONTROLLER_ID, CONTROLLER_ID + 1, -1)),
            self.one((STRANGE_ID, DIRECTORY_ID, bytes(16))),
            listeners,
            self.odds(0.5),
        )

    def remove_voter(self) -> Message:
        return RemoveRaftVoterRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong")),
            self.one((CONTROLLER_ID, CONTROLLER_ID + 1, -1)),
            self.one((STRANGE_ID, DIRECTORY_ID, bytes(16))),
        )

    def update_voter(self) -> Message:
        """Never of the leader: it would move itself, or end its process in a static quorum of Kafka's."""
        m = update_raft_voter_request
        span = self.one(((0, 1), (0, 1), (0, 0), (2, 3)))
        return m.UpdateRaftVoterRequest(
            self.one((None, self.cluster_id, self.cluster_id, "wrong")),
            self.one((1, 1, 1, 0, 2, -1)),
            self.one((CONTROLLER_ID + 1, CONTROLLER_ID + 1, -1)),
            STRANGE_ID,
            [m.Listener("CONTROLLER", "127.0.0.1", 1)] * (not self.odds(0.1)),
            m.KRaftVersionFeature(*span),
        )

    def envelope(self) -> Message:
        inner, version = self.next()
        if isinstance(inner, EnvelopeRequest):
            return inner
        frame = b"".join(encode_request(api_key(inner), version, 77, "forwarded", inner))[4:]
        principal = encode_bytes(DefaultPrincipalData("User", self.one(self.forwarded), False), 0)
        data: bytes | None = b"\0\0" + principal
        if self.odds(0.1):
            data = self.one((b"", b"\0", b"\0\1" + principal, b"\0\0" + principal[:-3], principal, None))
        address = b"\x7f\0\0\1" if self.odds(0.9) else self.one((b"", b"\1\2\3", bytes(16)))
        if self.odds(0.05):
            frame = frame[: self.random.randint(8, len(frame))]
        return EnvelopeRequest(frame, data, address)

    WEIGHTED: tuple[Callable[[RandomRequests], Any], ...] = (
        *[register_broker] * 8,
        *[heartbeat] * 14,
        unregister_broker,
        *[create_topics] * 8,
        *[delete_topics] * 2,
        *[create_partitions] * 3,
        *[alter_partition] * 10,
        *[elect_leaders] * 3,
        *[reassign] * 4,
        list_reassignments,
        *[incremental_alter_configs] * 4,
        *[alter_configs] * 2,
        *[describe_configs] * 2,
        allocate_producer_ids,
        *[assign_replicas_to_dirs] * 4,
        *[update_features] * 2,
        describe_cluster,
        *[describe_quorum] * 2,
        api_versions,
        *[fetch] * 8,
        *[fetch_snapshot] * 2,
        vote,
        begin_quorum_epoch,
        end_quorum_epoch,
        register_controller,
        add_voter,
        remove_voter,
        update_voter,
        *[envelope] * 5,
        *[access_requests.create_acls] * 5,
        *[access_requests.delete_acls] * 2,
        *[access_requests.describe_acls] * 3,
        *[access_requests.alter_client_quotas] * 5,
        *[access_requests.alter_scram] * 4,
        access_requests.delegation_token,
    )
