"""Requests that an older version carries in another form, rewritten for the version that a peer speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from msgspec.structs import replace

from kraftd.messages.alter_partition_request import AlterPartitionRequest, PartitionData, TopicData
from kraftd.wire.message import Message

FIRST_ALTER_PARTITION_WITH_EPOCHS = 3


def in_version(message: Message, version: int) -> Message:
    """The request as this version carries it; most have one form for all versions."""
    rewrite = _REWRITES.get(type(message))
    return message if rewrite is None else rewrite(message, version)


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


_REWRITES: dict[type[Message], Callable[[Message, int], Message]] = {AlterPartitionRequest: _alter_partition}
