"""Where the logs of partitions end, for the lag of share groups: asked of each partition's leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.broker_node.coordination.coordination import NO_LEADER, CoordinatingNode, leader_of
from kraftd.groups.share.asking import Offsets
from kraftd.groups.share.effects import Place
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.wire.error_code import ErrorCode, error_of

CONSUMER = -1  # the replica id of a reader that is no broker
LATEST = -1  # the time that stands for the next offset


def find_latest_offsets(
    node: CoordinatingNode, places: list[Place], listener: str, then: Callable[[Offsets], None]
) -> None:
    """Find the high watermark of each partition, here or at other brokers at a listener.

    `then` is called in a later step if another broker is asked.
    """
    found: Offsets = {}
    by_leader: dict[int, list[Place]] = {}
    for topic, index in places:
        leader = leader_of(node.view, topic, index)
        if leader is None:
            found[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif leader == NO_LEADER:
            found[topic, index] = ErrorCode.LEADER_NOT_AVAILABLE
        elif leader == node.view.node_id:
            found[topic, index] = _own_offset(node, topic, index)
        else:
            by_leader.setdefault(leader, []).append((topic, index))
    left = len(by_leader)
    if not left:
        then(found)

    def answered(asked: list[Place], response: Any) -> None:
        nonlocal left
        left -= 1
        found.update(dict.fromkeys(asked, ErrorCode.NETWORK_EXCEPTION))
        for topic in getattr(response, "topics", ()):
            for row in topic.partitions:
                error = error_of(row.error_code)
                found[topic.name, row.partition_index] = error or row.offset
        if not left:
            then(found)

    for leader, asked in by_leader.items():
        request = ListOffsetsRequest(CONSUMER, topics=_topics(asked))

        def take(response: Any, asked: list[Place] = asked) -> None:
            answered(asked, response)

        node.own_requests.ask_node(leader, listener, "latest-offsets", request, None, take)


def _own_offset(node: CoordinatingNode, topic: str, index: int) -> int | ErrorCode:
    hosted = node.replicas.get(topic, index)
    partition = None if hosted is None else hosted.partition
    if partition is None or not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return partition.high_watermark


def _topics(places: list[Place]) -> list[ListOffsetsTopic]:
    rows: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in places:
        rows.setdefault(topic, []).append(ListOffsetsPartition(index, timestamp=LATEST))
    return [ListOffsetsTopic(topic, some) for topic, some in rows.items()]
