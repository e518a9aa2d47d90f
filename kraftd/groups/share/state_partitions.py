"""Which partitions of a share group the share coordinator knows.

A partition is `initializing` from the request to the share coordinator until its answer. Only then it is
`initialized`, and may be assigned. A topic is `deleting` from the request to forget it until its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from kraftd.groups.call import Metadata
from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.named_tuple import NamedTuple

UNKNOWN_NAME = "<UNKNOWN>"  # of a topic that is gone, as in Kafka


class Named(NamedTuple):
    """Partitions of a topic, with its name."""

    name: str
    indexes: AbstractSet[int]


Topics = Mapping[bytes, Named]  # by topic id


class StatePartitions(Struct, frozen=True):
    """What is known of a group; noted_ms: when the record was written or loaded here."""

    initializing: Topics = {}
    initialized: Topics = {}
    deleting: frozenset[bytes] = frozenset()
    noted_ms: int = 0


UNTOUCHED = StatePartitions()


def combined(first: Topics, second: Topics) -> dict[bytes, Named]:
    """The partitions of both; a topic of both has the name that it has in the second."""
    both = dict(first)
    for topic_id, named in second.items():
        old = both.get(topic_id)
        both[topic_id] = named if old is None else Named(named.name, old.indexes | named.indexes)
    return both


def without(topics: Topics, gone: Partitions) -> dict[bytes, Named]:
    """The topics without some partitions; one of which none is left goes."""
    rest: dict[bytes, Named] = {}
    for topic_id, named in topics.items():
        left = named.indexes - gone.get(topic_id, frozenset())
        if left or topic_id not in gone:
            rest[topic_id] = Named(named.name, left)
    return rest


def named(metadata: Metadata, partitions: Partitions) -> dict[bytes, Named]:
    """Partitions with the names of their topics."""
    return {
        topic_id: Named(metadata.topic_name(topic_id) or UNKNOWN_NAME, indexes)
        for topic_id, indexes in partitions.items()
    }


def uninitialized(
    known: StatePartitions, names: Iterable[str], metadata: Metadata, now_ms: int, retry_ms: int
) -> dict[bytes, Named]:
    """The partitions of topics of which the share coordinator is to be asked to begin.

    Those that have been initializing for as long as `retry_ms` are among them: their answer was lost.
    """
    is_fresh = 0 <= now_ms - known.noted_ms < retry_ms  # a clock that has gone back holds no group up
    begun = combined(known.initialized, known.initializing) if is_fresh else known.initialized
    found: dict[bytes, Named] = {}
    for name in names:
        topic_id = metadata.topic_id(name)
        if topic_id is None:
            continue
        count = metadata.partition_count(topic_id)
        indexes = begun[topic_id].indexes if topic_id in begun else frozenset[int]()
        if not indexes or len(indexes) < count:
            found[topic_id] = Named(name, frozenset(range(count)) - indexes)
    return found


def initializing(known: StatePartitions, begun: Topics) -> StatePartitions:
    """What is known once the share coordinator is asked to begin some partitions."""
    return StatePartitions(
        combined(known.initializing, begun), known.initialized, known.deleting.difference(begun)
    )


def initialized(known: StatePartitions, metadata: Metadata, partitions: Partitions) -> StatePartitions:
    """What is known once the share coordinator has begun some partitions."""
    return StatePartitions(
        without(known.initializing, partitions),
        combined(known.initialized, named(metadata, partitions)),
        known.deleting,
    )


def not_initialized(known: StatePartitions, partitions: Partitions) -> StatePartitions:
    """What is known once the share coordinator has refused some partitions: they are asked for again."""
    return StatePartitions(without(known.initializing, partitions), known.initialized, known.deleting)


def without_topics(known: StatePartitions, topic_ids: AbstractSet[bytes]) -> StatePartitions:
    """What is known once topics are deleted."""
    return StatePartitions(
        {topic_id: one for topic_id, one in known.initializing.items() if topic_id not in topic_ids},
        {topic_id: one for topic_id, one in known.initialized.items() if topic_id not in topic_ids},
        known.deleting - topic_ids,
    )
