"""A long list in slices is the same bytes."""

from __future__ import annotations

import pytest

from kraftd.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kraftd.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraftd.messages.elect_leaders_response import ElectLeadersResponse, ReplicaElectionResult
from kraftd.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from kraftd.wire.codec import encode
from kraftd.wire.message import Message
from kraftd.wire.slices import encode_in_turns


def in_slices(message: Message, version: int, rows: int) -> tuple[bytes, int]:
    turns, count = encode_in_turns(message, version, rows), 1
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return b"".join(end.value), count
        count += 1


def topics(count: int) -> CreateTopicsResponse:
    configs = [CreatableTopicConfigs("a", "b", False, 1, False)] * 3
    rows = [CreatableTopicResult(f"t{n}", bytes(16), 0, None, 0, 1, 1, configs) for n in range(count)]
    return CreateTopicsResponse(throttle_time_ms=7, topics=rows)


@pytest.mark.parametrize("version", range(2, 8))
@pytest.mark.parametrize("count", [0, 1, 10, 11, 126, 127, 128, 300])
def test_topics_in_every_version(version: int, count: int) -> None:
    whole = b"".join(encode(topics(count), version))
    data, turns = in_slices(topics(count), version, 10)
    assert data == whole
    assert turns == max(1, -(-count // 10))


@pytest.mark.parametrize("version", range(3))
def test_elections_with_what_stands_before_the_list(version: int) -> None:
    def answer() -> ElectLeadersResponse:
        rows = [ReplicaElectionResult(f"topic-{number}", []) for number in range(20_000)]
        return ElectLeadersResponse(1, 0, rows)

    data, turns = in_slices(answer(), version, 3_000)
    assert data == b"".join(encode(answer(), version))
    assert turns == 7


@pytest.mark.parametrize("version", range(1, 7))
def test_deletions(version: int) -> None:
    def answer() -> DeleteTopicsResponse:
        return DeleteTopicsResponse(0, [DeletableTopicResult(f"t{n}", bytes(16), 3) for n in range(25)])

    assert in_slices(answer(), version, 4) == (b"".join(encode(answer(), version)), 7)


def test_what_has_no_list_at_its_end_is_encoded_whole() -> None:
    assert in_slices(FetchResponse(), 17, 1) == (b"".join(encode(FetchResponse(), 17)), 1)


@pytest.mark.parametrize("version", [11, 12, 15, 16, 18])
def test_fetch_is_sliced_unless_it_has_tagged_fields(version: int) -> None:
    def answer(*endpoints: NodeEndpoint) -> FetchResponse:
        topics = [FetchableTopicResponse("t", bytes(15) + bytes([n]), [PartitionData(n)]) for n in range(25)]
        return FetchResponse(session_id=7, responses=topics, node_endpoints=list(endpoints))

    assert in_slices(answer(), version, 4) == (b"".join(encode(answer(), version)), 7)
    if version >= 16:
        tagged = b"".join(encode(answer(NodeEndpoint(1, "h", 9, None)), version))
        assert in_slices(answer(NodeEndpoint(1, "h", 9, None)), version, 4) == (tagged, 1)
