"""Surveys every partition, in slices: finds those offline, under-replicated or below min.insync.replicas.

The image keeps no index of these, as no decision asks for them.
"""

from __future__ import annotations

from collections.abc import Generator

from msgspec import Struct, field

from kraftd.metadata.image import Image
from kraftd.metadata.state import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE, PartitionState, TopicState

MAX_EXAMPLES = 20
SLICE_PARTITIONS = 2_000
MIN_ISR = "min.insync.replicas"


class Example(Struct, frozen=True):
    """A partition with a fault."""

    topic: str
    partition: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


class Group(Struct):
    """How many partitions have one fault, and the first of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, topic: TopicState, index: int, state: PartitionState) -> None:
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(Example(topic.name, index, state.leader, state.isr, state.replicas))


class Hosted(Struct):
    """The counts of one broker: replicas, those outside of the ISR, and leaderships."""

    replicas: int = 0
    lagging: int = 0
    leads: int = 0


class Survey(Struct):
    """The partitions of an image. `offset` is that of the image when the survey began."""

    offset: int
    offline: Group = field(default_factory=Group)
    under_replicated: Group = field(default_factory=Group)
    under_min_isr: Group = field(default_factory=Group)
    reassigning: Group = field(default_factory=Group)
    brokers: dict[int, Hosted] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Survey at {self.offset}: {self.offline.count} offline, {self.under_replicated.count} under>"


def survey(image: Image) -> Generator[None, None, Survey]:
    """Examine every partition; yields after each slice. Topics deleted meanwhile are left out."""
    found = Survey(image.offset)
    default_min_isr = _number(image.config(BROKER_RESOURCE, "").get(MIN_ISR), 1)
    seen = 0
    for topic_id in list(image.topics):
        topic = image.topic(topic_id)
        if topic is None:
            continue
        min_isr = _number(image.config(TOPIC_RESOURCE, topic.name).get(MIN_ISR), default_min_isr)
        for index, state in topic.partitions.items():
            _count(found, topic, index, state, min_isr)
        seen += len(topic.partitions)
        if seen >= SLICE_PARTITIONS:
            seen = 0
            yield
    return found


def _count(found: Survey, topic: TopicState, index: int, state: PartitionState, min_isr: int) -> None:
    isr, brokers = state.isr, found.brokers
    for replica in state.replicas:
        hosted = brokers.get(replica)
        if hosted is None:
            hosted = brokers[replica] = Hosted()
        hosted.replicas += 1
        hosted.lagging += replica not in isr
        hosted.leads += replica == state.leader
    if state.leader == NO_LEADER:
        found.offline.add(topic, index, state)
    if len(isr) < len(state.replicas) - len(state.adding_replicas):
        found.under_replicated.add(topic, index, state)
    if len(isr) < min(min_isr, len(state.replicas)):
        found.under_min_isr.add(topic, index, state)
    if state.is_reassigning:
        found.reassigning.add(topic, index, state)


def _number(text: str | None, default: int) -> int:
    try:
        return default if text is None else int(text)
    except ValueError:
        return default
