"""The version of a request that a peer speaks too, and the request as that version carries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from msgspec.structs import replace

from kraftd.messages.alter_partition_request import AlterPartitionRequest, PartitionData, TopicData
from kraftd.wire.api import valid_versions
from kraftd.wire.message import Message
from kraftd.wire.table import table_of

FIRST_ALTER_PARTITION_WITH_EPOCHS = 3
NO_VERSION = -1


def agreed_version(
    cls: type[Message], at_most: int | None, offered: Mapping[int, tuple[int, int]]
) -> tuple[int, int]:
    """The key of a request, and the highest version that both sides know; NO_VERSION without any."""
    key = table_of(cls).key
    assert key is not None
    first, last = valid_versions(key)
    lowest, highest = offered.get(key, (0, -1))
    version = min(last, highest, last if at_most is None else at_most)
    return key, version if version >= max(first, lowest) else NO_VERSION


def _alter_partition(message: Message, version: int) -> Message:
    """Before version 3 an ISR has no broker epochs (KIP-903): the controller then checks none."""
    if version >= FIRST_ALTER_PARTITION_WITH_EPOCHS:
        return message
    request = cast("AlterPartitionRequest", message)
    return replace(request, topics=[_without_epochs(topic) for topic in request.topics])


def _without_epochs(topic: TopicData) -> TopicData:
    return replace(topic, partitions=[_ids_alone(one) for one in topic.partitions])


def _ids_alone(proposal: PartitionData) -> PartitionData:
    isr = tuple(member.broker_id for member in proposal.new_isr_with_epochs)
    return replace(proposal, new_isr=isr, new_isr_with_epochs=[])


# By kind, how a request is rewritten for a version; most kinds have one form for all versions.
REWRITES: dict[type[Message], Callable[[Message, int], Message]] = {AlterPartitionRequest: _alter_partition}
