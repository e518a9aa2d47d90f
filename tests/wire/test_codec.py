"""Messages to bytes and back, without Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.wire.api import message_class
from kraftd.wire.codec import OWN_PART_BYTES, decode, decode_prefix, encode, encode_bytes
from kraftd.wire.errors import EncodeError, UnsupportedFieldError, UnsupportedVersionError
from kraftd.wire.message import Message
from tests.wire.strategies import ALL_MESSAGES, for_all, messages, versions

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("name", ALL_MESSAGES)
def test_encoded_messages_are_decoded_from_bytes_and_from_views(name: str) -> None:
    cls = message_class(name)

    def check(version: int, message: Message) -> None:
        data = encode_bytes(message, version)
        assert b"".join(encode(message, version)) == data
        assert decode(cls, version, data) == message
        assert decode(cls, version, memoryview(data)) == message
        assert decode_prefix(cls, version, b"ab" + data + b"cd", 2) == (message, 2 + len(data))

    for version in versions(name):
        for_all(messages(name, version), partial(check, version), 5)


def fetch_response(records: bytes | memoryview) -> FetchResponse:
    return FetchResponse(
        responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[PartitionData(records=records)])]
    )


def test_large_records_are_separate_parts_and_not_copied() -> None:
    records = memoryview(bytes(OWN_PART_BYTES))
    parts = encode(fetch_response(records), 17)
    assert len(parts) == 3
    assert parts[1] is records


def test_small_records_are_joined_with_the_rest() -> None:
    assert len(encode(fetch_response(memoryview(bytes(100))), 17)) == 1


def test_decoded_records_are_a_view_of_the_input() -> None:
    data = encode_bytes(fetch_response(b"x" * 10000), 17)
    records = decode(FetchResponse, 17, memoryview(data)).responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data


def test_an_unknown_version_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(UnsupportedVersionError, match="FetchRequest has versions 4 to 18, not 3"):
        encode(FetchRequest(), 3)
    with pytest.raises(UnsupportedVersionError, match="not 19"):
        decode(FetchRequest, 19, b"")


def test_a_nested_struct_cannot_be_encoded_as_a_message() -> None:
    with pytest.raises(TypeError, match="FetchTopic is not a message"):
        encode(FetchTopic(), 17)


def test_an_ignorable_field_is_dropped_by_a_version_without_it() -> None:
    request = FetchRequest(
        topics=[FetchTopic("t", partitions=[FetchPartition(high_watermark=7)])], rack_id="r"
    )
    assert decode(FetchRequest, 10, encode_bytes(request, 10)) == FetchRequest(
        topics=[FetchTopic("t", partitions=[FetchPartition()])]
    )


@pytest.mark.parametrize(
    ("message", "version", "text"),
    [
        (
            FetchRequest(replica_state=ReplicaState(1)),
            14,
            "FetchRequest v14.replica_state: the version has no such field",
        ),
        (
            QuorumStateData(cluster_id="abc"),
            1,
            "QuorumStateData v1.cluster_id: the version has no such field",
        ),
        (
            QuorumStateData(current_voters=[Voter(1)]),
            1,
            "QuorumStateData v1.current_voters: the version has no",
        ),
        (MetadataRequest(topics=None), 0, "MetadataRequest v0.topics: cannot be null in this version"),
        (
            ApiVersionsRequest(unknown_tags=((100, b""),)),
            2,
            "ApiVersionsRequest v2: the version has no tagged fields",
        ),
    ],
)
def test_a_value_that_the_version_cannot_carry_is_refused(message: Message, version: int, text: str) -> None:
    with pytest.raises(UnsupportedFieldError) as caught:
        encode(message, version)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            CreateTopicsRequest([CreatableTopic("t", 1 << 31)]),
            "topics[0].num_partitions: 2147483648 is no int32",
        ),
        (CreateTopicsRequest([CreatableTopic("t", "1")]), "topics[0].num_partitions: '1' is no int32"),  # type: ignore[arg-type]
        (CreateTopicsRequest([CreatableTopic(None)]), "topics[0].name: cannot be null"),  # type: ignore[arg-type]
        (
            CreateTopicsRequest([CreatableTopic("x" * 32768)]),
            "topics[0].name: a string of 32768 bytes, more than",
        ),
        (CreateTopicsRequest([CreatableTopic("\ud800")]), "topics[0].name: not writable as UTF-8"),
        (CreateTopicsRequest([CreatableTopic(5)]), "topics[0].name: a string is wanted, not 5"),  # type: ignore[arg-type]
        (CreateTopicsRequest(5), "topics: an array is wanted, not 5"),  # type: ignore[arg-type]
        (CreateTopicsRequest([None]), "topics[0]: CreatableTopic is wanted, not None"),  # type: ignore[list-item]
        (CreateTopicsRequest(unknown_tags=((5, b""), (5, b""))), ": tag 5 is not unknown, or there twice"),
        (CreateTopicsRequest(unknown_tags=((-1, b""),)), ": -1 is no tag"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused_by_name(message: Message, text: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(message, 7)
    separator = "" if text.startswith(":") else "."
    assert str(caught.value).startswith(f"CreateTopicsRequest v7{separator}{text}")


def test_a_uuid_that_is_not_16_bytes_is_refused_rather_than_filled() -> None:
    with pytest.raises(EncodeError, match=r"topics\[0\].topic_id: a uuid is 16 bytes"):
        encode(FetchRequest(topics=[FetchTopic(topic_id=b"short")]), 17)


def test_a_bytes_field_accepts_only_bytes() -> None:
    with pytest.raises(EncodeError, match="request_data: bytes are wanted, not 7"):
        encode(EnvelopeRequest(request_data=7), 0)  # type: ignore[arg-type]


def test_null_and_empty_differ_in_a_tagged_array() -> None:
    unchanged, emptied = PartitionChangeRecord(), PartitionChangeRecord(isr=())
    assert decode(PartitionChangeRecord, 2, encode_bytes(unchanged, 2)).isr is None
    assert decode(PartitionChangeRecord, 2, encode_bytes(emptied, 2)).isr == ()


def test_unknown_tags_are_kept_and_written_between_the_known_ones_in_order() -> None:
    newer = FetchRequest(
        topics=[FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(high_watermark=7)])]
    )
    data = encode_bytes(newer, 18)
    read = decode(FetchRequest, 17, data)
    assert read.topics[0].partitions[0].unknown_tags == ((1, (7).to_bytes(8, "big")),)
    assert encode_bytes(read, 17) == data
    read.topics[0].partitions[0].replica_directory_id = bytes(range(16))
    tagged = decode(FetchRequest, 18, encode_bytes(read, 17)).topics[0].partitions[0]
    assert tagged == FetchPartition(replica_directory_id=bytes(range(16)), high_watermark=7)


def test_a_tag_that_the_version_knows_is_not_written_as_an_unknown_one() -> None:
    partition = FetchPartition(unknown_tags=((1, b"x"),))
    with pytest.raises(EncodeError, match="tag 1 is not unknown"):
        encode(FetchRequest(topics=[FetchTopic(partitions=[partition])]), 18)


def test_tags_out_of_order_are_accepted_and_sorted() -> None:
    data = encode_bytes(FetchRequest(), 17)
    read = decode(FetchRequest, 17, data[:-1] + b"\2\x65\1b\x64\1a")
    assert read.unknown_tags == ((100, b"a"), (101, b"b"))


def test_fixed_elements_are_read_alike_with_and_without_tags() -> None:
    """Partitions without tags are read in bulk; if one has a tag, they are read one by one."""
    partitions = [FetchPartition(number, 1, 2, 3, 4, 5) for number in range(300)]
    request = FetchRequest(topics=[FetchTopic(topic_id=bytes(16), partitions=partitions)])
    assert decode(FetchRequest, 16, encode_bytes(request, 16)) == request
    partitions[200].unknown_tags = ((9, b"z"),)
    assert decode(FetchRequest, 16, encode_bytes(request, 16)) == request


def test_the_repr_of_a_message_has_its_fields_that_are_not_default() -> None:
    assert repr(FetchPartition(3, fetch_offset=88)) == "FetchPartition(partition=3, fetch_offset=88)"


def test_an_unknown_engine_is_refused_at_once() -> None:
    environment = os.environ | {"KRAFTD_CODEC": "fortran"}
    command = [sys.executable, "-c", "import kraftd.wire.codec"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "KRAFTD_CODEC=fortran: there is no such codec engine, only c and python" in done.stderr
