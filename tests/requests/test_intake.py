"""Frames become calls, also those that a listener does not serve in their version."""

from __future__ import annotations

import struct

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.requests.call import Call
from kraftd.requests.intake import read_call, read_carried
from kraftd.wire.api import ApiKey
from kraftd.wire.errors import ProtocolError


def header(key: int, version: int, client_id: bytes = b"c") -> bytes:
    return struct.pack(">hhih", key, version, 7, len(client_id)) + client_id


def test_versions_in_an_unknown_version_are_a_call_of_their_client__kip511() -> None:
    frame = header(ApiKey.API_VERSIONS, 99) + bytes(1)
    call = read_call({}, 1, 2, "CONTROLLER", "10.0.0.1", frame)
    assert call.message == ApiVersionsRequest()
    told = (call.connection_id, call.slot, call.listener, call.host, call.key, call.version)
    assert told == (1, 2, "CONTROLLER", "10.0.0.1", ApiKey.API_VERSIONS, 99)
    assert (call.correlation_id, call.client_id) == (7, "c")


@pytest.mark.parametrize(("key", "version"), [(999, 0), (ApiKey.CREATE_TOPICS, 99)])
def test_an_envelope_carries_known_apis_and_versions_only(key: int, version: int) -> None:
    outer = Call(1, 0, "CONTROLLER", "10.0.0.1", ApiKey.ENVELOPE, 0, 1, "c", None)
    with pytest.raises(ProtocolError, match=f"request_api_version.*API {key} has no version {version}"):
        read_carried(outer, header(key, version) + bytes(1), {ApiKey.CREATE_TOPICS})


def test_an_api_that_is_not_forwardable_is_no_call_whatever_else_is_wrong() -> None:
    outer = Call(1, 0, "CONTROLLER", "10.0.0.1", ApiKey.ENVELOPE, 0, 1, "c", None)
    assert read_carried(outer, header(ApiKey.VOTE, 99) + bytes(1), {ApiKey.CREATE_TOPICS}) is None
