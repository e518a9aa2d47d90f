"""Large requests of groups in pieces, each handled in an event loop callback of its own.

A piece is a request of the same kind with some of the partitions or groups, so the coordinator handles it as
any other. The client gets one answer, once all pieces are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from kraftd.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.messages.offset_delete_request import OffsetDeleteRequest
from kraftd.messages.offset_fetch_request import OffsetFetchRequest
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kraftd.wire.message import Message

PARTITIONS_OF_A_PIECE = 200  # each is checked, stored and written
GROUPS_OF_A_PIECE = 100


def pieces_of(request: Message) -> list[Message]:
    """The request in pieces; itself alone if it is short or of a kind that is not divided."""
    divide = DIVIDED.get(type(request))
    return ([] if divide is None else list(divide(request))) or [request]


def _by_partitions(
    request: OffsetCommitRequest
    | OffsetDeleteRequest
    | TxnOffsetCommitRequest
    | AlterShareGroupOffsetsRequest,
) -> Iterator[Message]:
    for topics in _topics_of_pieces(request.topics, "partitions"):
        yield replace(request, topics=topics)


def _topics_of_pieces(topics: Sequence[Any], rows: str) -> Iterator[list[Any]]:
    """The topics of each piece; `rows` is the list of a topic's partitions. An empty topic counts as one."""
    piece: list[Any] = []
    room = PARTITIONS_OF_A_PIECE
    for topic in topics:
        all_rows = getattr(topic, rows)
        for first in range(0, len(all_rows) or 1, PARTITIONS_OF_A_PIECE):
            some = all_rows[first : first + PARTITIONS_OF_A_PIECE]
            if piece and len(some) > room:
                yield piece
                piece, room = [], PARTITIONS_OF_A_PIECE
            piece.append(topic if len(some) == len(all_rows) else replace(topic, **{rows: some}))
            room -= len(some) or 1
    if piece:
        yield piece


def _offset_fetch(request: OffsetFetchRequest) -> Iterator[Message]:
    """Each group alone; before version 8 there is one, in fields of its own."""
    if not request.groups:
        for topics in _topics_of_pieces(request.topics or (), "partition_indexes"):
            yield replace(request, topics=topics)
        return
    for group in request.groups:
        divided: list[Any] = list(_topics_of_pieces(group.topics or (), "partition_indexes"))
        for topics in divided or [group.topics]:
            yield replace(request, groups=[replace(group, topics=topics)])


def _describe_share_group_offsets(request: DescribeShareGroupOffsetsRequest) -> Iterator[Message]:
    """Each group alone, some partitions at a time."""
    for group in request.groups:
        divided: list[Any] = list(_topics_of_pieces(group.topics or (), "partitions"))
        for topics in divided or [group.topics]:
            yield replace(request, groups=[replace(group, topics=topics)])


def _describe_groups(request: DescribeGroupsRequest) -> Iterator[Message]:
    for first in range(0, len(request.groups), GROUPS_OF_A_PIECE):
        yield replace(request, groups=request.groups[first : first + GROUPS_OF_A_PIECE])


def _modern_group_describe(
    request: ConsumerGroupDescribeRequest | ShareGroupDescribeRequest,
) -> Iterator[Message]:
    for first in range(0, len(request.group_ids), GROUPS_OF_A_PIECE):
        yield replace(request, group_ids=request.group_ids[first : first + GROUPS_OF_A_PIECE])


def _delete_groups(request: DeleteGroupsRequest) -> Iterator[Message]:
    names = tuple(dict.fromkeys(request.groups_names))
    for first in range(0, len(names), GROUPS_OF_A_PIECE):
        yield replace(request, groups_names=names[first : first + GROUPS_OF_A_PIECE])


DIVIDED: dict[type[Message], Callable[[Any], Iterator[Message]]] = {
    OffsetCommitRequest: _by_partitions,
    OffsetDeleteRequest: _by_partitions,
    TxnOffsetCommitRequest: _by_partitions,
    OffsetFetchRequest: _offset_fetch,
    ConsumerGroupDescribeRequest: _modern_group_describe,
    ShareGroupDescribeRequest: _modern_group_describe,
    DescribeGroupsRequest: _describe_groups,
    DescribeShareGroupOffsetsRequest: _describe_share_group_offsets,
    AlterShareGroupOffsetsRequest: _by_partitions,
    DeleteGroupsRequest: _delete_groups,
}


def joined(answers: Sequence[Any]) -> Any:
    """The answer of all pieces. An error of a whole piece is that of the whole request."""
    whole = answers[0]
    for answer in answers:
        if getattr(answer, "error_code", 0):
            return answer
    for answer in answers[1:]:
        if hasattr(whole, "results"):
            whole.results += answer.results
        elif hasattr(whole, "responses"):
            _add_topics(whole.responses, answer.responses)
        elif getattr(whole, "groups", None):
            _add_groups(whole.groups, answer.groups)
        else:
            _add_topics(whole.topics, answer.topics)
    return whole


def _add_groups(groups: list[Any], more: list[Any]) -> None:
    """Add groups; an OffsetFetch has the pieces of a group one after the other."""
    for group in more:
        last = groups[-1]
        if group.group_id != last.group_id or not hasattr(group, "topics"):
            groups.append(group)
        elif group.error_code and not last.error_code:
            groups[-1] = group
        elif not last.error_code:
            _add_topics(last.topics, group.topics)


def _add_topics(topics: list[Any], more: list[Any]) -> None:
    """Add topics; the partitions of one that is in both stay together."""
    places = {_key(topic): topic for topic in topics}
    for topic in more:
        found = places.get(_key(topic))
        if found is None:
            topics.append(topic)
            places[_key(topic)] = topic
        else:
            found.partitions += topic.partitions


def _key(topic: Any) -> tuple[str, bytes]:
    name = topic.topic_name if hasattr(topic, "topic_name") else topic.name
    return name, getattr(topic, "topic_id", b"")
