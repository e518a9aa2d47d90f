"""A client's metadata of topics and leaders, and the rules for stale answers (KIP-232). No IO.

Rules. 1. The leader epoch of a partition, by its topic's id, never goes back: an answer with a lower one is
stale, and the whole topic in it is refused. 2. An answer that lacks a partition that the topic has is refused
likewise. 3. Another id is another topic and starts anew, also after a deletion. A replaced id returns only
from a node that has reported its successor, since no node goes back; or if no node is left that reports the
successor. So no number of lagging nodes brings back a deleted topic. 4. Of an answer with a stale topic,
neither the list of nodes nor a deletion is believed. 5. A leader epoch that is seen before its topic counts
from the first answer about the topic on. 6. After a refusal the caller asks another node, after a pause.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable
from typing import Any

from kraftd.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftd.named_tuple import NamedTuple
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

MAX_REMEMBERED_TOPICS = 100_000  # deleted ones whose leader epochs are still remembered
MAX_FORMER_IDS = 8  # of one name
MAX_REPORTS = 1_000  # nodes whose last report about a name is remembered
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
    offline: tuple[int, ...] = ()


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
        self._floors: OrderedDict[str, dict[int, int]] = OrderedDict()  # epochs of topics without an answer
        self._ids: OrderedDict[str, Ids] = OrderedDict()

    def __repr__(self) -> str:
        return f"<MetadataCache of {len(self.topics)} topics, {len(self.nodes)} nodes>"

    def take(self, answer: MetadataResponse, node_id: int, requested: Iterable[str] | None = None) -> Taken:
        """Store a node's answer. `requested` are the names in the request; None is all topics, so a topic
        missing in the answer is gone.
        """
        accepted, refused, seen, gone = [], [], set(), []
        for topic in answer.topics:
            name = topic.name or ""
            seen.add(name)
            if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                gone.append(name)
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
            gone += self.topics.keys() - seen
        if not refused:
            self.controller_id = answer.controller_id
            for name in gone:
                self.topics.pop(name, None)  # its id and epochs stay known: a stale node may still name it
        if not refused or not self.nodes:
            self.nodes = {one.node_id: (one.host, one.port) for one in answer.brokers} or self.nodes
        self.cluster_id = self.cluster_id or answer.cluster_id
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
        if found is None:
            if epoch >= 0:
                floors = self._floors.setdefault(topic, {})
                floors[index] = max(epoch, floors.get(index, UNKNOWN_EPOCH))
                _shorten(self._floors, MAX_REMEMBERED_TOPICS)
            return True
        if epoch < 0:
            return False
        epochs = self._epochs.setdefault(_key(found), {})
        if epoch > epochs.get(index, UNKNOWN_EPOCH):
            epochs[index] = epoch
        partition = found.partitions.get(index)
        return partition is None or partition.leader.epoch < epoch

    def _stale(self, topic: MetadataResponseTopic, name: str, node_id: int) -> str | None:
        """The reason why this answer about a topic is stale; None if it is not."""
        if topic.topic_id != ZERO_UUID and self._ids_of(name).is_replaced(
            topic.topic_id, node_id, self.nodes
        ):
            return "it has the id of a topic that was replaced"
        key: TopicKey = topic.topic_id if topic.topic_id != ZERO_UUID else name
        epochs = dict(self._epochs.get(key, {}))
        for index, epoch in self._floors.get(name, {}).items():
            epochs[index] = max(epoch, epochs.get(index, UNKNOWN_EPOCH))
        epochs_reported = {one.partition_index: one.leader_epoch for one in topic.partitions}
        for index, epoch in epochs_reported.items():
            if 0 <= epoch < epochs.get(index, UNKNOWN_EPOCH):
                return f"partition {index} has leader epoch {epoch}, {epochs[index]} was seen before"
        missing = epochs.keys() - epochs_reported.keys()
        if missing and epochs_reported:
            return f"partition {min(missing)} is missing"
        if name in self.topics and missing:
            return "it has no partitions"
        return None

    def _ids_of(self, name: str) -> Ids:
        ids = self._ids.get(name)
        if ids is None:
            ids = self._ids[name] = Ids()
            _shorten(self._ids, MAX_REMEMBERED_TOPICS + len(self.topics))
        return ids

    def _keep(self, topic: MetadataResponseTopic, name: str) -> None:
        if topic.topic_id != ZERO_UUID:
            self._ids_of(name).believe(topic.topic_id)
            self._ids.move_to_end(name)
        partitions = {one.partition_index: partition_of(one) for one in topic.partitions}
        found = self.topics[name] = Topic(name, topic.topic_id, topic.is_internal, partitions)
        epochs = self._epochs.setdefault(_key(found), {})
        self._epochs.move_to_end(_key(found))
        floors = self._floors.pop(name, {})
        for index, partition in partitions.items():
            seen = max(epochs.get(index, UNKNOWN_EPOCH), floors.get(index, UNKNOWN_EPOCH))
            epochs[index] = max(partition.leader.epoch, seen)
        _shorten(self._epochs, MAX_REMEMBERED_TOPICS + len(self.topics))


class Ids:
    """The ids that one name has had: the believed one, those that it replaced, and each node's last report.

    No node's metadata goes back. So a node that reported one id and then another proves which is the newer.
    """

    def __init__(self) -> None:
        self.believed: bytes | None = None
        self.former: list[bytes] = []
        self._reports: OrderedDict[int, bytes] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Ids {self.believed!r}, formerly {self.former}>"

    def is_replaced(self, topic_id: bytes, node_id: int, nodes: Container[int]) -> bool:
        """Note a node's report; return whether it is of a former id, and nothing shows that this id is the
        newer one. `nodes` are those that can still correct their report.
        """
        before = self._reports.get(node_id)
        self._reports[node_id] = topic_id
        self._reports.move_to_end(node_id)
        _shorten(self._reports, MAX_REPORTS)
        if topic_id not in self.former or before == self.believed:
            return False
        return any(one == self.believed and other in nodes for other, one in self._reports.items())

    def believe(self, topic_id: bytes) -> None:
        """Replace the believed id."""
        if topic_id in self.former:
            self.former.remove(topic_id)
        if self.believed not in (None, topic_id):
            self.former.append(self.believed)
            del self.former[:-MAX_FORMER_IDS]
        self.believed = topic_id


def partition_of(row: MetadataResponsePartition) -> Partition:
    """A partition as an answer has it."""
    leader = Leader(row.leader_id, row.leader_epoch)
    return Partition(leader, row.replica_nodes, row.isr_nodes, row.error_code, row.offline_replicas)


def _shorten(remembered: OrderedDict[Any, Any], most: int) -> None:
    """Forget the oldest entries beyond a number."""
    while len(remembered) > most:
        remembered.popitem(last=False)


def _key(topic: Topic) -> TopicKey:
    return topic.id if topic.id != ZERO_UUID else topic.name
