"""A client's metadata of topics and leaders, and the rules for stale answers (KIP-232). No IO.

Rules. 1. The leader epoch of a partition, by its topic's id, never goes back: an answer with a lower one is
stale, and the whole topic in it is refused. 2. An answer that lacks a partition that the topic has is refused
likewise. 3. Another id is another topic and starts anew; the replaced id returns only if two nodes in a row
name it. 4. After a refusal the caller asks another node, after a pause.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from kraftd.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

MAX_REMEMBERED_TOPICS = 100_000  # deleted ones whose leader epochs are still remembered
MAX_FORMER_IDS = 8  # of one name
UNKNOWN_EPOCH = -1

Address = tuple[str, int]
TopicKey = bytes | str  # the id; the name if the node is too old for ids


class Leader(NamedTuple):
    """The leader of a partition: id -1 is none, epoch -1 an old node's answer without epochs."""

    id: int
    epoch: int


class Partition(NamedTuple):
    leader: Leader
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error_code: int


class Topic(NamedTuple):
    name: str
    id: bytes
    is_internal: bool
    partitions: dict[int, Partition]


class Stale(NamedTuple):
    """Why a topic of an answer was refused."""

    topic: str
    why: str


class Taken(NamedTuple):
    """The result of an answer: the names of the accepted topics, and the refusals."""

    accepted: tuple[str, ...]
    refused: tuple[Stale, ...]


class MetadataCache:
    """The requested topics, from the newest answers."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.nodes: dict[int, Address] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1
        self._epochs: OrderedDict[TopicKey, dict[int, int]] = OrderedDict()
        self._former_ids: dict[str, list[bytes]] = {}
        self._claims: dict[
            str, tuple[bytes, int]
        ] = {}  # a former id that one node has named again, and that node

    def __repr__(self) -> str:
        return f"<MetadataCache of {len(self.topics)} topics, {len(self.nodes)} nodes>"

    def take(self, answer: MetadataResponse, node_id: int, requested: Iterable[str] | None = None) -> Taken:
        """Store a node's answer. `requested` are the names in the request; None is all topics, so a topic
        missing in the answer is gone.
        """
        self.nodes = {one.node_id: (one.host, one.port) for one in answer.brokers} or self.nodes
        self.cluster_id = answer.cluster_id or self.cluster_id
        self.controller_id = answer.controller_id
        accepted, refused, seen = [], [], set()
        for topic in answer.topics:
            name = topic.name or ""
            seen.add(name)
            if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                self._drop(name)
                continue
            if topic.error_code != ErrorCode.NONE and not topic.partitions:
                continue  # such as an authorization that is missing: it says nothing of the topic
            why = self._stale(topic, name, node_id)
            if why is not None:
                refused.append(Stale(name, why))
                continue
            self._keep(topic, name)
            accepted.append(name)
        if requested is None:
            for name in self.topics.keys() - seen:
                self._drop(name)
        return Taken(tuple(accepted), tuple(refused))

    def partition(self, topic: str, index: int) -> Partition | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def leader(self, topic: str, index: int) -> Leader | None:
        """The known leader; None if the partition is unknown."""
        partition = self.partition(topic, index)
        return None if partition is None else partition.leader

    def saw_epoch(self, topic: str, index: int, epoch: int) -> bool:
        """Note a leader epoch from records or from an answer about a position; return whether the metadata is
        older and must be requested anew.
        """
        found = self.topics.get(topic)
        if found is None or epoch < 0:
            return found is None
        epochs = self._epochs.setdefault(_key(found), {})
        if epoch > epochs.get(index, UNKNOWN_EPOCH):
            epochs[index] = epoch
        partition = found.partitions.get(index)
        return partition is None or partition.leader.epoch < epoch

    def _stale(self, topic: MetadataResponseTopic, name: str, node_id: int) -> str | None:
        """The reason why this answer about a topic is stale; None if it is not."""
        known = self.topics.get(name)
        if known is not None and ZERO_UUID not in (known.id, topic.topic_id) and known.id != topic.topic_id:
            return self._returns(topic, name, node_id)
        key: TopicKey = topic.topic_id if topic.topic_id != ZERO_UUID else name
        epochs = self._epochs.get(key, {})
        epochs_reported = {one.partition_index: one.leader_epoch for one in topic.partitions}
        for index, epoch in epochs_reported.items():
            if 0 <= epoch < epochs.get(index, UNKNOWN_EPOCH):
                return f"partition {index} has leader epoch {epoch}, {epochs[index]} was seen before"
        missing = epochs.keys() - epochs_reported.keys()
        if missing and epochs_reported:
            return f"partition {min(missing)} is missing"
        if known is not None and missing:
            return "it has no partitions"
        return None

    def _returns(self, topic: MetadataResponseTopic, name: str, node_id: int) -> str | None:
        """Handle another id: the topic was recreated, unless the id was replaced before."""
        former = self._former_ids.get(name, ())
        if topic.topic_id not in former:
            return None
        claim = self._claims.get(name)
        if claim is not None and claim[0] == topic.topic_id and claim[1] != node_id:
            return None  # two nodes agree: then the other id was the older one
        self._claims[name] = (topic.topic_id, node_id)
        return "it has the id of a topic that was replaced"

    def _keep(self, topic: MetadataResponseTopic, name: str) -> None:
        known = self.topics.get(name)
        if known is not None and known.id != topic.topic_id and known.id != ZERO_UUID:
            former = self._former_ids.setdefault(name, [])
            if topic.topic_id in former:
                former.remove(topic.topic_id)
            former.append(known.id)
            del former[:-MAX_FORMER_IDS]
        self._claims.pop(name, None)
        partitions = {
            one.partition_index: Partition(
                Leader(one.leader_id, one.leader_epoch), one.replica_nodes, one.isr_nodes, one.error_code
            )
            for one in topic.partitions
        }
        found = self.topics[name] = Topic(name, topic.topic_id, topic.is_internal, partitions)
        epochs = self._epochs.setdefault(_key(found), {})
        self._epochs.move_to_end(_key(found))
        for index, partition in partitions.items():
            epochs[index] = max(partition.leader.epoch, epochs.get(index, UNKNOWN_EPOCH))
        while len(self._epochs) > MAX_REMEMBERED_TOPICS + len(self.topics):
            self._epochs.popitem(last=False)

    def _drop(self, name: str) -> None:
        """Drop a deleted topic; its epochs are remembered, because a stale node may still name it."""
        if self.topics.pop(name, None) is not None:
            self._claims.pop(name, None)


def _key(topic: Topic) -> TopicKey:
    return topic.id if topic.id != ZERO_UUID else topic.name
