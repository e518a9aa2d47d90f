"""Bytes that are no message give one ProtocolError, and need no more memory than their size justifies."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.wire.api import ApiKey, message_class, valid_versions
from kraftd.wire.codec import decode, decode_prefix, encode_bytes
from kraftd.wire.errors import ProtocolError
from kraftd.wire.explain import DecodeWalk
from kraftd.wire.frames import parse_request_header, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import table_of
from tests.wire.strategies import ALL_MESSAGES, messages, versions

pytestmark = pytest.mark.usefixtures("engine")

fuzz = settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))

NASTY = st.sampled_from([0x00, 0x01, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
EDITS = st.lists(st.tuples(st.integers(0, 1 << 16), NASTY), min_size=1, max_size=4)


def read(cls: type[Message], version: int, data: bytes) -> ProtocolError | None:
    """Decode; return the only permitted error, which must name place and reason.

    The walk that explains errors must accept what the engine accepts, and refuse the rest.
    """
    table = table_of(cls)
    try:
        decode(cls, version, data)
    except ProtocolError as error:
        assert error.message == f"{table.name} v{version}"
        assert 0 <= error.offset <= len(data)
        assert error.reason != "the bytes cannot be read"
        return error
    walk = DecodeWalk(table, version, data, 0)
    walk.struct(table.name)
    assert walk.at == len(data)
    return None


@pytest.mark.parametrize("name", ALL_MESSAGES)
def test_changed_or_cut_messages_raise_only_protocol_errors(name: str) -> None:
    cls = message_class(name)

    @fuzz
    @given(st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(versions(name)))
        good = encode_bytes(data.draw(messages(name, version)), version)
        for end in range(len(good))[:200]:
            assert read(cls, version, good[:end]) is not None
        assert read(cls, version, good + b"\0") is not None
        changed = bytearray(good)
        for at, byte in data.draw(EDITS):
            if changed:
                changed[at % len(changed)] = byte
        read(cls, version, bytes(changed))

    check()


@pytest.mark.parametrize("name", ALL_MESSAGES)
def test_random_bytes_raise_only_protocol_errors(name: str) -> None:
    cls = message_class(name)

    @fuzz
    @given(st.sampled_from(versions(name)), st.binary(max_size=80))
    def check(version: int, data: bytes) -> None:
        read(cls, version, data)

    check()


@pytest.mark.parametrize("name", ALL_MESSAGES)
def test_announced_lengths_take_no_memory(name: str) -> None:
    cls = message_class(name)
    sources = [bytes([byte]) * 4096 for byte in (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF)]
    sources += [b"\xff\xff\xff\xff\x0f" * 800, b"\x7f\xff\xff\xff" * 1000, b"\x00\x00\x0f\xff" * 1000]
    for version in versions(name):
        decode_prefix(cls, version, encode_bytes(cls(), version))
        for data in sources:
            tracemalloc.start()
            try:
                read(cls, version, data)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < 500 * len(data)


FETCH = encode_bytes(
    FetchRequest(cluster_id="abc", topics=[FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(3)])]),
    17,
)
CREATE = encode_bytes(CreateTopicsRequest([CreatableTopic("abc", 1, 1)]), 7)
CREATE_V4 = encode_bytes(CreateTopicsRequest([CreatableTopic("abc", 1, 1)]), 4)
NAME = CREATE.index(b"abc")


@pytest.mark.parametrize(
    ("cls", "version", "data", "text"),
    [
        (FetchRequest, 17, FETCH[:10], "max_bytes at byte 8: 4 bytes are needed, 2 are left"),
        (FetchRequest, 17, FETCH[:60], "topics[0].partitions at byte 38: 1 elements of at least 33 bytes"),
        (FetchRequest, 17, FETCH + b"ab", " at byte 82: 2 bytes are left after the message"),
        (
            FetchRequest,
            17,
            FETCH[:-5] + b"\5\4abcd",
            "cluster_id at byte 76: its tag announces 5 bytes, its value has 4",
        ),
        (FetchRequest, 17, FETCH[:-7] + b"\2" + FETCH[-6:] * 2, " at byte 82: tag 0 is there twice"),
        (
            CreateTopicsRequest,
            7,
            CREATE.replace(b"\4abc", b"\0"),
            "topics[0].name at byte 1: null, where it cannot",
        ),
        (
            CreateTopicsRequest,
            7,
            b"\0" + CREATE[1:],
            "topics at byte 0: null, where it cannot be null",
        ),
        (CreateTopicsRequest, 7, b"\x80" * 6, "topics at byte 0: a varint is longer than 5 bytes"),
        (CreateTopicsRequest, 7, b"\xff" * 4 + b"\x1f", "topics at byte 0: a varint is greater than 32 bits"),
        (
            CreateTopicsRequest,
            7,
            b"\xff" * 4 + b"\x0f",
            "topics at byte 0: 4294967294 elements of at least 10 bytes",
        ),
        (
            CreateTopicsRequest,
            7,
            CREATE.replace(b"\4abc", b"\x81\x80\2" + b"a" * 32768),
            "topics[0].name at byte 1: a string of 32768 bytes, more than 32767",
        ),
        (CreateTopicsRequest, 7, CREATE[:-1] + b"\2\x64\0\x64\0", " at byte 22: tag 100 is there twice"),
        (CreateTopicsRequest, 7, CREATE[:-1] + b"\x7f\x64\0", " at byte 19: 127 tagged fields are announced"),
        (CreateTopicsRequest, 4, b"\xff\xff\xff\xf0", "topics at byte 0: a length of -16"),
        (
            CreateTopicsRequest,
            4,
            CREATE_V4[:4] + b"\xff\xfe" + CREATE_V4[6:],
            "topics[0].name at byte 4: a length of -2",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_error_names_message_field_offset_and_reason(
    cls: type[Message], version: int, data: bytes, text: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(cls, version, data)
    separator = "" if text.startswith(" ") else "."
    assert str(caught.value).startswith(f"{cls.__name__} v{version}{separator}{text}")


@pytest.mark.parametrize(
    ("cls", "version", "data", "elements", "text"),
    [
        (FetchRequest, 17, FETCH, 3, " at byte 75: more than"),
        (CreateTopicsRequest, 7, CREATE[:-1] + b"\2\x64\0\x65\0", 3, " at byte 19: more than"),
        (
            DeleteTopicsRequest,
            5,
            encode_bytes(DeleteTopicsRequest(topic_names=("a", "b")), 5),
            2,
            "topic_names at byte 0: more than",
        ),
        (
            ElectLeadersRequest,
            2,
            encode_bytes(ElectLeadersRequest(0, [TopicPartitions("a", (1, 2, 3))]), 2),
            4,
            "topic_partitions[0].partitions at byte 4: more than",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_message_of_more_elements_than_the_limit_is_refused(
    cls: type[Message], version: int, data: bytes, elements: int, text: str
) -> None:
    """Elements of all arrays count together, and unknown tagged fields, which take as much memory."""
    for limit in (0, elements, elements + 1):
        assert decode_prefix(cls, version, data, 0, limit) == decode_prefix(cls, version, data)
    for limit in range(1, elements):
        with pytest.raises(ProtocolError, match=f"more than {limit} elements in all"):
            decode_prefix(cls, version, data, 0, limit)
    with pytest.raises(ProtocolError) as caught:
        decode(cls, version, data, 0, elements - 1)
    separator = "" if text.startswith(" ") else "."
    assert str(caught.value).startswith(f"{cls.__name__} v{version}{separator}{text}")


def test_elements_above_the_limit_take_no_memory() -> None:
    data = encode_bytes(ElectLeadersRequest(0, [TopicPartitions("a", (7,) * 200_000)]), 2)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="more than 100000 elements in all"):
            decode_prefix(ElectLeadersRequest, 2, data, 0, 100_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
@pytest.mark.parametrize("cls", [CreateTopicsRequest, FetchRequest])
def test_every_kind_of_buffer_is_decoded(kind: Callable[[bytes], Any], cls: type[Message]) -> None:
    version, data = (7, CREATE) if cls is CreateTopicsRequest else (17, FETCH)
    buffer = kind(b"head" + data)
    found = decode(cls, version, buffer, 4)
    assert found == decode(cls, version, data)
    if isinstance(buffer, bytearray):
        buffer.extend(b"more")  # nothing keeps a view of it


def test_the_offset_counts_from_the_beginning_of_the_frame() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(FetchRequest, 17, b"headers!" + FETCH[:10], 8)
    assert (caught.value.field, caught.value.offset) == ("max_bytes", 16)


@fuzz
@given(st.binary(max_size=40))
def test_a_random_frame_has_a_header_or_is_refused(frame: bytes) -> None:
    try:
        header, key, version, end = parse_request_header(frame)
    except ProtocolError:
        return
    assert (header.request_api_key, header.request_api_version) == (key, version)
    assert 10 <= end <= len(frame)


@fuzz
@given(st.sampled_from(sorted(ApiKey)), st.binary(max_size=60))
def test_a_random_response_is_read_or_refused(key: ApiKey, frame: bytes) -> None:
    try:
        parse_response(key, valid_versions(key)[1], frame)
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"Z\xfcrich", "Z\ufffdrich"),  # Latin-1
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xe2\x82", "\ufffd"),  # cut off
        (b"\xc0\xaf", "\ufffd\ufffd"),  # longer than necessary
        (b"\xf0\x9f\x98 ", "\ufffd "),
        ("Zürich".encode(), "Zürich"),
    ],
)
def test_what_is_no_utf8_is_replaced_as_in_kafka(data: bytes, text: str) -> None:
    """librdkafka sends whatever bytes a client is called."""
    request = CREATE.replace(b"\4abc", bytes((len(data) + 1,)) + data)
    assert decode(CreateTopicsRequest, 7, request).topics[0].name == text
