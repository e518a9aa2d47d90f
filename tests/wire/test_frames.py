"""Frames: a length, a header, a message."""

from __future__ import annotations

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import (
    correlation_id,
    encode_request,
    encode_response,
    parse_request_header,
    parse_response,
)
from kraftd.wire.primitives import Buffer

pytestmark = pytest.mark.usefixtures("engine")


def joined(parts: list[Buffer]) -> bytes:
    """A frame without its length, which is checked."""
    data = b"".join(parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return data[4:]


def test_a_flexible_request_has_header_2_and_a_client_id_of_two_length_bytes() -> None:
    frame = joined(encode_request(ApiKey.API_VERSIONS, 4, 7, "me", ApiVersionsRequest("a", "b")))
    assert frame == b"\0\x12\0\x04\0\0\0\x07\0\x02me\0" + b"\x02a\x02b\0"


def test_a_request_that_is_not_flexible_has_header_1() -> None:
    frame = joined(encode_request(ApiKey.SASL_HANDSHAKE, 1, 7, None, SaslHandshakeRequest("PLAIN")))
    assert frame == b"\0\x11\0\x01\0\0\0\x07\xff\xff" + b"\0\x05PLAIN"


def test_the_header_of_a_request_has_the_offset_of_the_message() -> None:
    frame = joined(encode_request(ApiKey.API_VERSIONS, 4, 7, "me", ApiVersionsRequest("a", "b")))
    header, key, version, end = parse_request_header(memoryview(frame))
    assert (key, version, header.correlation_id, header.client_id) == (18, 4, 7, "me")
    assert frame[end:] == b"\x02a\x02b\0"


def test_a_null_client_id_is_read_as_an_empty_one() -> None:
    header, *_ = parse_request_header(b"\0\x11\0\x01\0\0\0\x07\xff\xff")
    assert header.client_id == ""


@pytest.mark.parametrize(("key", "version"), [(4, 0), (999, 0), (-1, 5), (18, 99), (1, 99), (1, -1)])
def test_the_header_of_an_unknown_api_or_version_can_be_read(key: int, version: int) -> None:
    frame = (
        key.to_bytes(2, "big", signed=True)
        + version.to_bytes(2, "big", signed=True)
        + b"\0\0\0\x07\0\x02me\0"
    )
    header, *found, _ = parse_request_header(frame)
    assert found == [key, version]
    assert (header.correlation_id, header.client_id) == (7, "me")


@pytest.mark.parametrize(
    "frame", [b"", b"\0\x12\0", b"\0\x12\0\x04\0\0\0\x07\0\x09me", b"\0\x12\0\x04\0\0\0\x07\xff\xfe"]
)
def test_a_frame_without_a_header_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError, match="RequestHeader"):
        parse_request_header(frame)


def test_a_response_has_the_header_of_its_version() -> None:
    assert joined(encode_response(ApiKey.FETCH, 11, 9, FetchResponse())) == b"\0\0\0\x09" + bytes(14)
    assert joined(encode_response(ApiKey.FETCH, 12, 9, FetchResponse()))[:5] == b"\0\0\0\x09\0"


def test_large_records_of_a_response_are_not_copied() -> None:
    records = memoryview(bytes(100_000))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])])
    parts = encode_response(ApiKey.FETCH, 17, 9, response)
    assert any(part is records for part in parts)
    header, read = parse_response(ApiKey.FETCH, 17, joined(parts))
    assert header.correlation_id == correlation_id(joined(parts)) == 9
    assert read == response


def test_api_versions_answered_in_version_0_is_decoded__kip511() -> None:
    answer = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION)
    frame = joined(encode_response(ApiKey.API_VERSIONS, 0, 9, answer))
    assert parse_response(ApiKey.API_VERSIONS, 4, frame)[1] == answer


def test_a_response_too_short_for_its_correlation_id_is_refused() -> None:
    with pytest.raises(ProtocolError):
        correlation_id(b"\0\0\0")
    with pytest.raises(ProtocolError):
        parse_response(ApiKey.FETCH, 17, b"")
