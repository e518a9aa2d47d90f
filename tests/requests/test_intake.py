"""Frames become calls, even those in a version that a listener does not serve."""

from __future__ import annotations

import struct

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.requests.call import Call
from kraftd.requests.events import FramesReceived
from kraftd.requests.intake import NotServed, read_call, read_carried
from kraftd.requests.registry import Route
from kraftd.wire.api import ApiKey
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import encode_request

ROUTES = {18: Route(ApiKey.API_VERSIONS, None, None, lambda: lambda call: None)}
ROUTES[18].first, ROUTES[18].last = 1, 3  # fewer versions than Kafka's
SOFTWARE = ApiVersionsRequest("java", "4.3.1")
AT = FramesReceived(1, 2, [], "C", "h")
NO_TAGS, ONE_TAG = b"\0", b"\x01\x05\x02ab"


def header(key: int, version: int, client_id: bytes = b"c") -> bytes:
    return struct.pack(">hhih", key, version, 7, len(client_id)) + client_id


def test_api_versions_in_an_unknown_version_is_a_call__kip511() -> None:
    frame = header(ApiKey.API_VERSIONS, 99) + bytes(1)
    event = FramesReceived(1, 2, [], "CONTROLLER", "10.0.0.1")
    call = read_call({}, event, 2, frame)
    assert call.message == ApiVersionsRequest()
    fields = (call.connection_id, call.slot, call.listener, call.host, call.key, call.version)
    assert fields == (1, 2, "CONTROLLER", "10.0.0.1", ApiKey.API_VERSIONS, 99)
    assert (call.correlation_id, call.client_id) == (7, "c")


@pytest.mark.parametrize(("key", "version"), [(999, 0), (ApiKey.CREATE_TOPICS, 99)])
def test_an_envelope_carries_known_apis_and_versions_only(key: int, version: int) -> None:
    outer = Call(1, 0, "CONTROLLER", "10.0.0.1", ApiKey.ENVELOPE, 0, 1, "c", None)
    with pytest.raises(ProtocolError) as error:
        read_carried(outer, header(key, version) + bytes(1), {ApiKey.CREATE_TOPICS})
    place = "RequestHeader.request_api_version at byte 2"
    assert str(error.value) == f"{place}: API {key} has no version {version}"


def test_an_api_that_is_not_forwardable_is_refused_before_other_checks() -> None:
    outer = Call(1, 0, "CONTROLLER", "10.0.0.1", ApiKey.ENVELOPE, 0, 1, "c", None)
    assert read_carried(outer, header(ApiKey.VOTE, 99) + bytes(1), {ApiKey.CREATE_TOPICS}) is None


@pytest.mark.parametrize("client_id", [None, "", "c", "cäfé"])
@pytest.mark.parametrize(("version", "message"), [(1, ApiVersionsRequest()), (3, SOFTWARE)])
def test_a_request_of_a_served_version_becomes_a_call(
    client_id: str | None, version: int, message: ApiVersionsRequest
) -> None:
    frame = b"".join(encode_request(ApiKey.API_VERSIONS, version, -7, client_id, message))[4:]
    for behind in (b"", b"xyz"):  # librdkafka leaves bytes there
        call = read_call(ROUTES, AT, 2, frame + behind)
        assert (call.connection_id, call.slot, call.listener, call.host) == (1, 2, "C", "h")
        assert (call.key, call.version, call.correlation_id) == (ApiKey.API_VERSIONS, version, -7)
        assert (call.client_id, call.message) == (client_id or "", message)


@pytest.mark.parametrize("tags", [NO_TAGS, ONE_TAG])
def test_tagged_fields_of_a_header_are_skipped(tags: bytes) -> None:
    frame = header(ApiKey.API_VERSIONS, 3) + tags + b"\x05java\x064.3.1\0"
    assert read_call(ROUTES, AT, 2, frame).message == SOFTWARE


@pytest.mark.parametrize(("routes", "version"), [(ROUTES, 0), (ROUTES, 4), ({}, 0), ({}, 3)])
def test_a_version_or_an_api_that_the_listener_does_not_serve_is_answered(
    routes: dict[int, Route], version: int
) -> None:
    frame = b"".join(encode_request(ApiKey.API_VERSIONS, version, 7, "c", SOFTWARE))[4:]
    with pytest.raises(NotServed):
        read_call(routes, AT, 2, frame)


@pytest.mark.parametrize("size", range(10))
def test_a_frame_without_a_whole_header_is_no_request(size: int) -> None:
    with pytest.raises(ProtocolError) as error:
        read_call(ROUTES, AT, 2, header(ApiKey.API_VERSIONS, 1)[:size])
    assert str(error.value) == f"RequestHeader at byte 0: {size} bytes are no header"


@pytest.mark.parametrize("client_id", [None, "admin"])
def test_a_carried_request_is_a_call_in_the_envelopes_slot__kip590(client_id: str | None) -> None:
    outer = Call(1, 2, "C", "h", ApiKey.ENVELOPE, 0, 1, "broker", None, arrived_ns=5, size_bytes=99)
    request = DeleteTopicsRequest(topic_names=("a",), timeout_ms=10)
    frame = b"".join(encode_request(ApiKey.DELETE_TOPICS, 5, 7, client_id, request))[4:]
    call = read_carried(outer, frame, {ApiKey.DELETE_TOPICS})
    assert call is not None and call.envelope is outer
    assert (call.connection_id, call.slot, call.listener, call.host) == (1, 2, "C", "h")
    assert (call.key, call.version, call.correlation_id) == (ApiKey.DELETE_TOPICS, 5, 7)
    assert (call.client_id, call.message) == (client_id or "", request)
    assert (call.arrived_ns, call.size_bytes) == (5, len(frame))


def test_a_client_id_of_a_negative_length_is_no_request() -> None:
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 1, 7, -2) + b"ab"
    with pytest.raises(ProtocolError):
        read_call(ROUTES, AT, 2, frame)


def test_an_answer_to_what_is_not_served_is_an_exception_with_a_text() -> None:
    error = NotServed([b"ab"])
    assert (str(error), error.parts) == ("not served", [b"ab"])


def test_a_null_client_id_in_an_unknown_version_is_empty__kip511() -> None:
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + bytes(1)
    assert read_call({}, AT, 2, frame).client_id == ""
