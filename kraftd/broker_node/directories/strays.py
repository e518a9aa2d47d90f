"""Logs that were found at the start, and are of no partition that this broker hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraftd.broker_node.effects import SetLogAside
from kraftd.metadata.replica_changes import NewestChanges
from kraftd.requests.outbox import Outbox
from kraftd.types import Uuid

LOGS_PER_CALLBACK = 100

Key = tuple[str, int]


def set_strays_aside(
    found: Mapping[Key, Uuid | None], newest: NewestChanges, outbox: Outbox
) -> Iterator[None]:
    """Rename logs of partitions that this broker does not host, and logs without a topic id, as Kafka does:
    they may be all that is left of them. `found` has the topic ids of the logs, `newest` the changes of
    hosted partitions.
    """
    for number, (key, topic_id) in enumerate(found.items(), 1):
        change = newest.get(*key)
        is_of_other_topic = change is not None and change.state is not None and topic_id != change.topic_id
        if change is None or is_of_other_topic:
            outbox.emit(SetLogAside(*key, None if change is None else change.topic_id))
        if not number % LOGS_PER_CALLBACK:
            yield
