"""Requests that are valid in the state, or but for one fault: random ones are refused at other checks."""

from __future__ import annotations

from typing import Any

from kraftd.configdef.definition import ConfigKey, broker_def, client_metrics_def, group_def, topic_def
from kraftd.messages import (
    alter_configs_request,
    alter_partition_reassignments_request,
    alter_partition_request,
    assign_replicas_to_dirs_request,
    broker_registration_request,
    create_topics_request,
    elect_leaders_request,
    fetch_request,
    fetch_snapshot_request,
    incremental_alter_configs_request,
    update_features_request,
)
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.features import FEATURES, supported_features
from kraftd.metadata.image import Image
from kraftd.metadata.state import BrokerState, PartitionState, TopicState
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.message import Message
from tests.kafka.conformance.sides import NEWEST_SNAPSHOT
from tests.kafka.differential.requests import BROKERS, STRANGE_ID, TOPICS, RandomRequests, directories

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_NUMBERS = ("0", "1", "-1", "-2", "2", "100", "1000", "45000", "60000", "3600000", "2147483648", "1.5", " 7 ")
_WORDS = ("", "x", "true", "FALSE", "compact", "delete", "zstd", "producer", "CreateTime", "*", "a,b", "a,,b")
_MATCHES = (
    "client_id=a.*",
    "client_id=[",
    "strange=a",
    "client_id",
    "client_software_name=a,client_id=b",
    "",
)
_OF_BROKERS = (  # configs that a controller validates, or does not
    "cordoned.log.dirs",
    "log.dirs",
    "min.insync.replicas",
    "node.id",
    "num.io.threads",
    "unclean.leader.election.enable",
)
_ELR_CONFIGS = (("min.insync.replicas", "2"), ("unclean.leader.election.enable", "true"))


class ValidButOne(RandomRequests):
    """Draws them. If the state has nothing that a request needs, a topic is created first."""

    def __init__(self, seed: int, image: Image, cluster_id: str) -> None:
        super().__init__(seed, image, cluster_id)
        self.seed = seed
        self.deletes_topics = False  # by this sequence so far

    # -- what there is

    def active(self) -> list[int]:
        return [id for id, state in self.image.brokers.items() if state.is_active]

    def known_broker(self) -> BrokerState | None:
        brokers = list(self.image.brokers.values())
        return self.one(brokers) if brokers else None

    def known_topic(self) -> TopicState | None:
        topics = list(self.image.topics.values())
        return self.one(topics) if topics else None

    # -- topics and partitions

    def wide_topic(self) -> Message:
        """A topic with one to three partitions of two or three replicas, mostly of an unused name."""
        m = create_topics_request
        used_names = {topic.name for topic in self.image.topics.values()}
        name = self.one([name for name in TOPICS if name not in used_names] or list(TOPICS))
        alive = self.active()
        width = min(len(alive), self.random.randint(2, 3)) or 1
        rows = [
            m.CreatableReplicaAssignment(index, tuple(self.random.sample(alive or list(BROKERS), width)))
            for index in range(self.random.randint(1, 3))
        ]
        configs = [m.CreatableTopicConfig(*pair) for pair in _ELR_CONFIGS if self.odds(0.3)]
        return m.CreateTopicsRequest([m.CreatableTopic(name, -1, -1, rows, configs)], 30_000, self.odds(0.03))

    def propose_isr(self) -> Message:
        """AlterPartition of partitions of one leader (KIP-497, KIP-903)."""
        m = alter_partition_request
        topic = self.known_topic()
        if topic is None:
            return self.wide_topic()
        led = [(index, state) for index, state in topic.partitions.items() if state.leader >= 0]
        if not led:
            return self.revive()
        leader = self.one(led)[1].leader
        partitions = [self._proposal(index, state) for index, state in led if state.leader == leader]
        topics = [m.TopicData(topic.id, partitions)]
        if self.odds(0.08):
            self._bend_isr(topics)
        epoch = self.image.brokers[leader].epoch if leader in self.image.brokers else -1
        return m.AlterPartitionRequest(leader, self.near(epoch, 0.03), topics)

    def _proposal(self, index: int, state: PartitionState) -> Any:
        m = alter_partition_request
        isr = [one for one in state.replicas if one == state.leader or self.odds(0.6)]
        data = m.PartitionData(
            index, state.leader_epoch, (), [], state.leader_recovery_state, state.partition_epoch
        )
        epochs = {one: self._epoch_of(one) for one in isr}
        match self.random.randrange(24):
            case 0:
                data.leader_epoch += self.one((-1, 1))
            case 1:
                data.partition_epoch += self.one((-1, 1))
            case 2:
                epochs[self.one(isr or [0])] = self.one((-1, 0, 10**9))
            case 3:
                epochs.pop(state.leader, None)
            case 4:
                stranger = self.one(BROKERS)
                epochs[stranger] = self._epoch_of(stranger)
            case 5:
                data.leader_recovery_state = self.one((0, 1))
            case 6:
                epochs = {}
        if self.odds(0.7):
            data.new_isr_with_epochs = [m.BrokerState(*pair) for pair in epochs.items()]
            if epochs and self.odds(0.03):
                data.new_isr_with_epochs *= 2
        else:
            data.new_isr = tuple(epochs)
        return data

    def _epoch_of(self, broker_id: int) -> int:
        known = self.image.brokers.get(broker_id)
        return known.epoch if known else -1

    def _bend_isr(self, topics: list[Any]) -> None:
        m = alter_partition_request
        (topic,) = topics
        match self.random.randrange(4):
            case 0:
                topic.topic_id = self.one((STRANGE_ID, bytes(16)))
            case 1:
                topic.partitions = [*topic.partitions, m.PartitionData(self.one((77, -1)))]
            case 2:
                topic.partitions = topic.partitions * 2
            case 3:
                topics.append(m.TopicData(STRANGE_ID, [m.PartitionData(0)]))

    def elect(self) -> Message:
        """ElectLeaders of existing partitions, preferred or unclean (KIP-460)."""
        m = elect_leaders_request
        topic = self.known_topic()
        if topic is None:
            return self.wide_topic()
        indexes = [*topic.partitions, *([9] if self.odds(0.1) else [])]
        chosen = tuple(self.random.sample(indexes, self.random.randint(1, len(indexes))))
        topics = [m.TopicPartitions(topic.name, chosen)] * self.one((1, 1, 1, 1, 1, 1, 2))
        return m.ElectLeadersRequest(self.one((0, 0, 1)), None if self.odds(0.1) else topics, 30_000)

    def move(self) -> Message:
        """Reassignments of existing partitions: to others, more, fewer, the same, and back (KIP-455).

        Not of one with eligible leaders: Kafka's controller may give up its leadership at its next election.
        """
        m = alter_partition_reassignments_request
        topic = self.known_topic()
        if topic is None:
            return self.wide_topic()
        moves = []
        for index, state in topic.partitions.items():
            if state.elr or state.last_known_elr or self.odds(0.3):
                continue
            alive = self.active() or list(BROKERS)
            targets: tuple[tuple[int, ...] | None, ...] = (
                tuple(self.random.sample(alive, min(len(alive), len(state.replicas)))),
                tuple(self.random.sample(alive, min(len(alive), self.random.randint(1, 3)))),
                tuple(reversed(state.replicas)),
                state.replicas,
                None,
            )
            cancels = state.is_reassigning and self.odds(0.4)
            moves.append(m.ReassignablePartition(index, None if cancels else self.one(targets)))
        return m.AlterPartitionReassignmentsRequest(
            30_000, self.odds(0.7), [m.ReassignableTopic(topic.name, moves)] if moves else []
        )

    def assign(self) -> Message:
        """AssignReplicasToDirs for replicas of one broker (KIP-858)."""
        m = assign_replicas_to_dirs_request
        broker, topic = self.known_broker(), self.known_topic()
        if broker is None or topic is None:
            return self.wide_topic()
        hosted = [index for index, state in topic.partitions.items() if broker.id in state.replicas]
        if not hosted or self.odds(0.05):
            hosted = [0, 77]
        own = [*broker.directories, STRANGE_ID, b"\0" * 15 + b"\1"]
        directory = self.one(own[: len(broker.directories)] or own) if self.odds(0.9) else self.one(own)
        topics = [m.TopicData(topic.id, [m.PartitionData(index) for index in hosted])]
        return m.AssignReplicasToDirsRequest(broker.id, broker.epoch, [m.DirectoryData(directory, topics)])

    # -- the life of a broker

    def beat(self) -> Message:
        """A heartbeat of a registered broker: it unfences, fences, shuts down, or still lags."""
        broker = self.known_broker()
        if broker is None:
            return self.come_back()
        fence, shut_down = self.one(
            ((False, False), (False, False), (False, False), (True, False), (False, True), (True, True))
        )
        offset = max(self.log_end - 1, broker.epoch)
        if self.odds(0.1):
            offset = self.one((broker.epoch - 1, broker.epoch, self.log_end, self.log_end + 1000))
        cordoned = None if self.odds(0.85) else self.one(((), broker.directories[:1], broker.directories))
        return BrokerHeartbeatRequest(broker.id, broker.epoch, offset, fence, shut_down, (), cordoned)

    def revive(self) -> Message:
        """A fenced broker's heartbeat; a registration if none is fenced."""
        fenced = [state for state in self.image.brokers.values() if state.fenced]
        if not fenced:
            return self.come_back()
        broker = self.one(fenced)
        return BrokerHeartbeatRequest(broker.id, broker.epoch, max(self.log_end - 1, broker.epoch))

    def come_back(self) -> Message:
        """A registration after a clean or an unclean shutdown, of the same or a new incarnation (KIP-966)."""
        m = broker_registration_request
        broker_id = self.one(BROKERS)
        known = self.image.brokers.get(broker_id)
        if self.odds(0.7) or known is None:
            self.incarnations[broker_id] += 1
        number = self.incarnations[broker_id] & 0xFF
        return m.BrokerRegistrationRequest(
            broker_id,
            self.cluster_id,
            b"\x44" * 12 + bytes([0, 0, broker_id, number]),
            [m.Listener("PLAINTEXT", "localhost", 9000 + broker_id)],
            [m.Feature(name, *span) for name, span in supported_features().items()],
            None if self.odds(0.7) else "r1",
            False,
            self._directories(broker_id),
            self.one((-1, known.epoch if known else -1, known.epoch if known else 7)),
        )

    def _directories(self, broker_id: int) -> tuple[bytes, ...]:
        own, fresh = directories(broker_id), self._fresh_directory(broker_id)
        return self.one((own, own, (*own, fresh), (fresh,)))

    def _fresh_directory(self, broker_id: int) -> bytes:
        """A directory id that no other sequence uses."""
        return bytes([0x99, broker_id]) + self.seed.to_bytes(8, "big", signed=True) + bytes(6)

    def delete_topics(self) -> Message:
        self.deletes_topics = True
        return super().delete_topics()

    def lose_directory(self) -> Message:
        """A directory goes offline, if all topics that had partitions in it still exist.

        Kafka's controller may search it for those of a deleted topic, and then gives up its leadership.
        """
        broker = self.known_broker()
        if broker is None or self.deletes_topics:
            return self.come_back()
        lost = tuple(one for one in broker.directories if one == self._fresh_directory(broker.id))
        return BrokerHeartbeatRequest(
            broker.id, broker.epoch, max(self.log_end - 1, broker.epoch), self.odds(0.1), False, lost
        )

    def retire(self) -> Message:
        """A registered broker is unregistered, or takes producer ids."""
        broker = self.known_broker()
        if broker is None:
            return self.come_back()
        if self.odds(0.6):
            return AllocateProducerIdsRequest(broker.id, broker.epoch)
        return UnregisterBrokerRequest(broker.id)

    # -- configs

    def configured(self) -> Message:
        """Any configs of a topic, group or metrics subscription, or some of a broker, near their bounds."""
        m = incremental_alter_configs_request
        type, name, keys = self._resource()
        chosen = self.random.sample(keys, min(len(keys), self.random.randint(1, 3)))
        changes = []
        for key in chosen:
            value = self._value(key)
            operation = self.one((_SET, _SET, _SET, _SET, _DELETE, _APPEND, _SUBTRACT))
            if operation in (_APPEND, _SUBTRACT) and key.type != "list" and self.odds(0.8):
                operation = _SET
            changes.append(m.AlterableConfig(key.name, operation, None if operation == _DELETE else value))
        return m.IncrementalAlterConfigsRequest([m.AlterConfigsResource(type, name, changes)], self.odds(0.1))

    def configured_whole(self) -> Message:
        """The same by AlterConfigs, which replaces all configs of a resource."""
        m = alter_configs_request
        type, name, keys = self._resource()
        chosen = self.random.sample(keys, min(len(keys), self.random.randint(0, 3)))
        configs = [m.AlterableConfig(key.name, self._value(key)) for key in chosen]
        return m.AlterConfigsRequest([m.AlterConfigsResource(type, name, configs)], self.odds(0.1))

    def _resource(self) -> tuple[int, str, list[ConfigKey]]:
        topic = self.known_topic()
        kinds: tuple[tuple[int, tuple[str, ...], Any], ...] = (
            (_TOPIC, (topic.name if topic else self.one(TOPICS),), topic_def()),
            (_GROUP, ("group", "group", "g 2", ""), group_def()),
            (_CLIENT_METRICS, ("metrics", "m2", ""), client_metrics_def()),
            (_BROKER_LOGGER, ("1", "3000", "", "x"), client_metrics_def()),
            (_BROKER, ("1", "2", "9"), {name: broker_def()[name] for name in _OF_BROKERS}),
        )
        type, names, definition = self.one((*kinds[:1] * 4, *kinds[1:3] * 2, *kinds[3:]))
        return type, self.one(names), [key for key in definition.values() if not key.internal]

    def _value(self, key: ConfigKey) -> str:
        if key.name == "match":
            return self.one(_MATCHES)
        if key.default is not None and self.odds(0.25):
            return key.default
        if key.rule is not None and self.odds(0.5):
            near = [one for part in key.rule[1:] for one in self._about(part)]
            if near:
                return self.one(near)
        numeric = key.type in ("int", "long", "short", "double")
        return self.one(_NUMBERS if numeric and self.odds(0.9) else _WORDS)

    def _about(self, part: Any) -> list[str]:
        """Values at a bound of a rule, or words of its list."""
        if isinstance(part, bool) or part is None:
            return []
        if isinstance(part, int):
            return [str(part), str(part - 1), str(part + 1)]
        if isinstance(part, float):
            return [str(part), str(part - 0.5), str(part + 0.5)]
        if isinstance(part, tuple):
            words = [str(word) for word in part]
            return [*words, *(word.upper() for word in words), ",".join(words)] if words else []
        return []

    # -- features, the quorum

    def level_feature(self) -> Message:
        """Features to any supported level or the next beyond; metadata.version keeps its level."""
        m = update_features_request
        updates = []
        for feature in self.random.sample(list(FEATURES.values()), self.one((1, 1, 2))):
            if feature.name == "kraft.version":
                continue  # Kafka's changes it even if it refuses another update
            level = self.random.randint(0, feature.highest + self.odds(0.1))
            now = self.image.features.get(feature.name, 0)
            fits = 1 if level >= now else self.one((2, 3))
            kind = fits if self.odds(0.8) else self.one((0, 1, 2, 3))
            oldest = self.odds(0.2)  # version 0 has another field for the kind
            updates.append(
                m.FeatureUpdateKey(feature.name, level, oldest and kind > 1, 1 if oldest else kind)
            )
        if self.odds(0.1):
            updates.append(m.FeatureUpdateKey("metadata.version", self.image.metadata_version, False, 1))
        return m.UpdateFeaturesRequest(30_000, updates, self.odds(0.3))

    def fetch_one(self) -> Message:
        """A fetch of the metadata log, with at most one fault in its parameters."""
        m = fetch_request
        partition = m.FetchPartition(0, 1, self.begins_at, 1, -1, self.one((1, 1 << 20)))
        match self.random.randrange(8):
            case 0:
                partition.current_leader_epoch, partition.last_fetched_epoch = 0, 0
            case 1:
                partition.current_leader_epoch = 2
            case 2:
                partition.fetch_offset = self.log_end + 1
            case 3:
                partition.fetch_offset = 2**63 - 1
            case 4:
                partition.last_fetched_epoch = 0
            case 5:
                partition.partition_max_bytes = self.one((0, -1))
        topic = m.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
        request = m.FetchRequest(max_wait_ms=self.one((0, 0, -1, 5)), topics=[topic])
        if self.odds(0.5):
            topic.topic = ""
        else:
            topic.topic_id = bytes(16)
        return request

    def fetch_newest_snapshot(self) -> Message:
        """A fetch of an existing snapshot, in part or whole, with at most one fault."""
        m = fetch_snapshot_request
        position = self.one((0, 0, 1, 300))
        partition = m.PartitionSnapshot(0, self.one((1, 1, -1)), NEWEST_SNAPSHOT, position)
        topic = m.TopicSnapshot(METADATA_TOPIC, [partition])
        cluster_id = self.one((None, self.cluster_id))
        request = m.FetchSnapshotRequest(cluster_id, self.one((50, -1)), 2**31 - 1, [topic])
        match self.random.randrange(10):
            case 0:
                partition.position = self.one((-1, 2**40))
            case 1:
                partition.current_leader_epoch = self.one((0, 2))
            case 2:
                partition.partition = 1
            case 3:
                topic.name = "x"
            case 4 | 5 | 6:
                request.max_bytes = self.one((0, 1, 300))  # a lower one ends Kafka's process
        return request
