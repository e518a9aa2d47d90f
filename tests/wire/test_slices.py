"""A long list in slices gives the same bytes, whatever precedes and follows it."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import strategies as st

from kraftd.ground.pace import at_once
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
from kraftd.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftd.wire import slices
from kraftd.wire.api import message_class
from kraftd.wire.codec import encode
from kraftd.wire.errors import EncodeError
from kraftd.wire.message import Message
from kraftd.wire.slices import EncodedRows, encode_in_slices, free_in_slices
from kraftd.wire.table import table_of
from tests.wire.strategies import ALL_MESSAGES, for_all, messages, versions

WITH_LISTS = [name for name in ALL_MESSAGES if len(table_of(message_class(name)).structs) > 1]


def in_slices(message: Message, version: int, structs: int) -> tuple[bytes, int]:
    pieces, count = encode_in_slices(deepcopy(message), version, structs), 1
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return b"".join(end.value), count
        count += 1


def test_any_message_sliced_at_every_row_has_the_same_bytes() -> None:
    def check(drawn: tuple[Message, int]) -> None:
        message, version = drawn
        for structs in (0, 2):
            assert in_slices(message, version, structs)[0] == b"".join(encode(message, version))

    drawn = st.sampled_from([(name, version) for name in WITH_LISTS for version in versions(name)])
    for_all(drawn.flatmap(lambda one: st.tuples(messages(*one), st.just(one[1]))), check, examples=500)


def topics(count: int) -> CreateTopicsResponse:
    configs = [CreatableTopicConfigs("a", "b", False, 1, False)] * 3
    rows = [CreatableTopicResult(f"t{n}", bytes(16), 0, None, 0, 1, 1, configs) for n in range(count)]
    return CreateTopicsResponse(throttle_time_ms=7, topics=rows)


@pytest.mark.parametrize("version", range(2, 8))
@pytest.mark.parametrize("count", [0, 1, 10, 11, 126, 127, 128, 300])
def test_sliced_topics_have_the_same_bytes_in_every_version(version: int, count: int) -> None:
    data, slice_count = in_slices(topics(count), version, 40)
    assert data == b"".join(encode(topics(count), version))
    rows_per_slice = 10 if version >= 5 else 40  # older versions have no configs
    assert slice_count == max(1, -(-count // rows_per_slice))


@pytest.mark.parametrize("version", range(3))
def test_sliced_elections_include_the_fields_before_the_list(version: int) -> None:
    rows = [ReplicaElectionResult(f"topic-{number}", []) for number in range(20_000)]
    answer = ElectLeadersResponse(1, 0, rows)
    assert in_slices(answer, version, 3_000) == (b"".join(encode(answer, version)), 7)


@pytest.mark.parametrize("version", range(1, 7))
def test_sliced_deletions_have_the_same_bytes(version: int) -> None:
    answer = DeleteTopicsResponse(0, [DeletableTopicResult(f"t{n}", bytes(16), 3) for n in range(25)])
    assert in_slices(answer, version, 4) == (b"".join(encode(answer, version)), 7)


def test_a_message_without_a_long_list_is_encoded_whole() -> None:
    assert in_slices(FetchResponse(), 17, 1) == (b"".join(encode(FetchResponse(), 17)), 1)


@pytest.mark.parametrize("version", [11, 12, 15, 16, 18])
@pytest.mark.parametrize("unknown_tags", [(), ((900, b"unknown"),)])
def test_a_sliced_fetch_includes_tagged_fields_behind_its_topics(
    version: int, unknown_tags: tuple[tuple[int, bytes], ...]
) -> None:
    endpoints = [NodeEndpoint(1, "host", 9, None)] if version >= 16 else []
    rows = [FetchableTopicResponse("t", bytes(15) + bytes([n]), [PartitionData(n)]) for n in range(25)]
    answer = FetchResponse(session_id=7, responses=rows, node_endpoints=endpoints)
    if version >= 12:
        answer.unknown_tags = unknown_tags
    assert in_slices(answer, version, 8) == (b"".join(encode(answer, version)), 7)


def metadata(*partitions: int) -> MetadataResponse:
    rows = [MetadataResponsePartition(0, n, 1, 7, (1, 2), (1,), (2,)) for n in range(max(partitions))]
    shown = [MetadataResponseTopic(0, f"t{n}", bytes(16), False, rows[:m]) for n, m in enumerate(partitions)]
    brokers = [MetadataResponseBroker(n, "host", 9092, None) for n in range(3)]
    return MetadataResponse(0, brokers, "cluster", 1, shown)


@pytest.mark.parametrize("version", range(14))
def test_no_slice_of_metadata_encodes_more_than_its_share(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for many topics and for one with many partitions; from v13 on, a field follows the topics."""
    sizes: list[int] = []

    def measured(message: Message, version: int) -> list[bytes]:
        parts = encode(message, version)
        sizes.append(sum(map(len, parts)))
        return parts

    answers = [metadata(*[9] * 300), metadata(1, 3_000, 2), metadata(*[1] * 3_000)]
    whole = [b"".join(encode(answer, version)) for answer in answers]
    of_100 = len(b"".join(encode(metadata(*[9] * 10), version)))
    monkeypatch.setattr(slices, "encode", measured)
    for answer, expected in zip(answers, whole, strict=True):
        data, slice_count = in_slices(answer, version, 100)
        assert data == expected
        assert 30 <= slice_count <= 61
        assert max(sizes) <= 1.5 * of_100


def test_a_slice_that_cannot_be_encoded_is_an_error() -> None:
    answer = metadata(*[1] * 300)
    answer.topics[250].topic_id = b"short"
    with pytest.raises(EncodeError):
        in_slices(answer, 13, 100)


@pytest.mark.parametrize("version", range(2, 8))
@pytest.mark.parametrize(("first", "more"), [(0, 1), (1, 0), (3, 127), (200, 300)])
def test_rows_that_were_encoded_before_follow_those_of_the_message(
    version: int, first: int, more: int
) -> None:
    whole = topics(first + more)
    expected = b"".join(encode(whole, version))
    rows = EncodedRows(CreateTopicsResponse, "topics", version)
    for at in range(first, first + more, 100):
        rows.add(whole.topics[at : min(at + 100, first + more)])
    whole.topics = whole.topics[:first]
    assert b"".join(at_once(rows.behind_in_slices(whole))) == expected
    assert repr(rows) == f"<EncodedRows {more}>"


@pytest.mark.parametrize("structs", [1, 3, 10_000])
def test_a_message_is_freed_in_slices_of_its_structs(structs: int) -> None:
    partitions = [2, 0, 7, 1]
    message = MetadataResponse(
        brokers=[MetadataResponseBroker(one) for one in range(4)],
        topics=[
            MetadataResponseTopic(partitions=[MetadataResponsePartition() for _ in range(count)])
            for count in partitions
        ],
    )
    topics, counts = list(message.topics), []
    freeing = free_in_slices(message, structs)
    while True:
        left = len(message.brokers) + len(message.topics) + sum(len(one.partitions) for one in topics)
        if next(freeing, "done") == "done":
            break
        counts.append(left - len(message.brokers) - sum(len(one.partitions) for one in topics))
    assert not message.brokers and not message.topics
    assert len(counts) >= {1: 12, 3: 6, 10_000: 0}[structs]


def test_large_records_are_not_copied() -> None:
    records = memoryview(bytes(1 << 20))
    partitions = [PartitionData(number, records=records if number % 2 else b"few") for number in range(9)]
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])
    whole = b"".join(encode(response, 12))
    parts = at_once(encode_in_slices(response, 12, 2))
    assert b"".join(parts) == whole
    assert sum(part is records for part in parts) == 4
