"""What the metadata image says of topics, for coordinators: ids, and what consumer groups need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kraftd.controller.configs.dynamic import is_valid
from kraftd.controller.configs.resources import CLUSTER, ResourceType
from kraftd.groups.consumer.metadata_hash import ReplicaIds, TopicHashing, topic_hash

if TYPE_CHECKING:
    from kraftd.answers.node import Slices
    from kraftd.answers.view import ClusterView
    from kraftd.metadata.image import Image

PARTITIONS_AT_ONCE = 5000  # of a topic that is hashed in one step; more are hashed in slices
PARTITIONS_A_SLICE = 2500


class _KnownHash(Struct):
    """The hash of a topic, and what it was made of; `version` of the image in which that was seen last."""

    version: int
    topic_id: bytes
    racks: dict[int, str]
    replicas: ReplicaIds
    value: int


class KnownTopics:
    """What the image says of topics, for a coordinator."""

    def __init__(self, view: ClusterView, go_on: Callable[[Slices], None]) -> None:
        self._view = view
        self._go_on = go_on
        self._newest: bytes | None = None
        self._newest_version = -1
        self._hashes: dict[str, _KnownHash] = {}
        self._hashing: set[str] = set()  # topics of which slices are under way
        self._hashed_count = 0
        self._racks: dict[int, str] = {}
        self._racks_version = -1

    def topic_id(self, name: str) -> bytes | None:
        """The id of a topic; None if there is none."""
        topic = self._view.image.topic_named(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic; None if there is none."""
        topic = self._view.image.topic(topic_id)
        return None if topic is None else topic.name

    def has_partition(self, name: str, index: int) -> bool:
        """Return whether a topic has a partition."""
        topic = self._view.image.topic_named(name)
        return topic is not None and index in topic.partitions

    # What consumer groups need besides

    def version(self) -> int:
        """The offset of the image."""
        return self._view.image.offset

    def hashes_version(self) -> int:
        """A number that changes with what the image says, and when the hash of a large topic is known."""
        return self._view.image.content_version + self._hashed_count

    def names_version(self) -> int:
        """The offset of the image in which the newest topic was seen first."""
        newest = next(reversed(self._view.image.topics), None)
        if newest != self._newest:
            self._newest, self._newest_version = newest, self.version()
        return self._newest_version

    def names(self) -> list[str]:
        """All topics."""
        return list(self._view.image.topic_names())

    def partition_count(self, topic_id: bytes) -> int:
        """How many partitions a topic has; 0 if there is none."""
        topic = self._view.image.topic(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def topic_hash(self, name: str) -> int | None:
        """The hash of a topic; it is computed anew when replicas or their racks are others."""
        image = self._view.image
        topic = image.topic_named(name)
        if topic is None:
            self._hashes.pop(name, None)
            return None
        known = self._hashes.get(name)
        if known is not None and known.version == image.content_version:
            return known.value
        if len(topic.partitions) > PARTITIONS_AT_ONCE:
            if name not in self._hashing:
                self._hashing.add(name)
                self._go_on(self._hash_later(name))
            return known.value if known is not None and known.topic_id == topic.id else None
        racks = self._racks_of(image)
        replicas = tuple([topic.partitions[index].replicas for index in range(len(topic.partitions))])
        if known is not None and (known.topic_id, known.racks, known.replicas) == (topic.id, racks, replicas):
            known.version = image.content_version
            return known.value
        value = topic_hash(topic.id, name, replicas, racks)
        self._hashes[name] = _KnownHash(image.content_version, topic.id, racks, replicas, value)
        return value

    def lacks_hash(self, name: str) -> bool:
        """Return whether `hash_in_slices` should come before the first question for a topic's hash."""
        topic = self._view.image.topic_named(name)
        if topic is None or len(topic.partitions) <= PARTITIONS_AT_ONCE:
            return False
        known = self._hashes.get(name)
        return known is None or known.topic_id != topic.id

    def _hash_later(self, name: str) -> Slices:
        try:
            yield
            yield from self.hash_in_slices(name)
        finally:
            self._hashing.discard(name)

    def hash_in_slices(self, name: str) -> Slices:
        """Compute the hash of a large topic, for `topic_hash`.

        If the image changes meanwhile, it may be of both. The next question begins anew then.
        """
        image = self._view.image
        topic = image.topic_named(name)
        if topic is None:
            return
        version, racks, partitions, count = (
            image.content_version, self._racks_of(image), topic.partitions, len(topic.partitions)
        )  # fmt: skip
        hashing = TopicHashing(topic.id, name, count, racks)
        for start in range(0, count, PARTITIONS_A_SLICE):
            states = [partitions.get(index) for index in range(start, min(start + PARTITIONS_A_SLICE, count))]
            hashing.add(tuple([state.replicas for state in states if state is not None]))
            yield
        if len(partitions) != count:  # it grew, or was deleted
            return
        before, value = self._hashes.get(name), hashing.value()
        self._hashes[name] = _KnownHash(version, topic.id, racks, (), value)
        if before is None or before.value != value:
            self._hashed_count += 1

    def _racks_of(self, image: Image) -> dict[int, str]:
        """The racks of brokers, where they are known; looked up once for all topics of an image."""
        if self._racks_version != image.content_version:
            brokers = image.brokers.values()
            racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
            self._racks_version = image.content_version
            self._racks = self._racks if racks == self._racks else racks
        return self._racks

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """The configs of a group that were set."""
        return self._view.image.config(ResourceType.GROUP, group_id)

    def dynamic_config(self, name: str) -> str | None:
        """A config of this broker, or else of all brokers, that was set while they run; None if none was."""
        for broker in (str(self._view.node_id), CLUSTER):
            text = self._view.image.config(ResourceType.BROKER, broker).get(name)
            if text is not None and is_valid(name, text):
                return text
        return None

    def __repr__(self) -> str:
        return f"<KnownTopics {self._view.image.topic_count}>"
