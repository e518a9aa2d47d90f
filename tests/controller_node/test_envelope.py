"""A client's request that a broker forwards: its principal and address, or the reason of its refusal."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller_node.apis.api_58_envelope import handle, read_principal
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.requests.call import Call
from kraftd.security.acls.hosts import java_text
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError, UnsupportedVersionError
from kraftd.wire.frames import encode_request, parse_response
from tests.controller_node.harness import Harness
from tests.security.test_authorizer import acl, authorizer

ADDRESS = bytes((10, 0, 0, 9))
REQUEST = ElectLeadersRequest(0, None, 5)


def principal(version: int = 0, token: bool = False) -> bytes:
    data = DefaultPrincipalData("User", "alice", token)
    return struct.pack(">h", version) + encode_bytes(data, 0)


def forwarded(key: int = ApiKey.ELECT_LEADERS, version: int = 2, request: Any = REQUEST) -> bytes:
    return b"".join(encode_request(key, version, 7, "admin", request))[4:]


def opened(envelope: EnvelopeRequest, *routes: int) -> tuple[list[Call], list[tuple[bool, ErrorCode]]]:
    """The handled calls, and the refusals: whether they refuse the carried request, and their codes."""
    handled: list[Call] = []
    refused: list[tuple[bool, ErrorCode]] = []

    def refuse(call: Call, code: ErrorCode) -> None:
        assert call is outer or call.envelope is outer
        refused.append((call is not outer, code))

    boundary = SimpleNamespace(
        registry=SimpleNamespace(routes=dict.fromkeys(routes or (ApiKey.ELECT_LEADERS,))),
        handle=handled.append,
        refuse=refuse,
    )
    outer = Call(1, 0, "C", "broker", ApiKey.ENVELOPE, 0, 1, "broker", envelope)
    node: Any = SimpleNamespace(boundary=boundary)
    handle(node, outer)
    return handled, refused


@pytest.mark.parametrize("token", [False, True])
def test_a_forwarded_request_acts_for_the_client_at_its_address__kip590(token: bool) -> None:
    (call,), refused = opened(EnvelopeRequest(forwarded(), principal(token=token), ADDRESS))
    assert not refused
    assert (call.host, call.principal) == ("10.0.0.9", Principal("User", "alice", token))
    assert (call.key, call.client_id, call.message) == (ApiKey.ELECT_LEADERS, "admin", REQUEST)
    assert call.envelope is not None


@pytest.mark.parametrize(
    ("envelope", "of_carried", "code"),
    [
        (EnvelopeRequest(forwarded(), b"", ADDRESS), False, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(forwarded(), None, ADDRESS), False, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (
            EnvelopeRequest(forwarded(), principal(version=9), ADDRESS),
            False,
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
        ),
        (EnvelopeRequest(forwarded(), principal(), b"123"), False, ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(b"\0", principal(), ADDRESS), False, ErrorCode.UNSUPPORTED_VERSION),
        (
            EnvelopeRequest(
                forwarded(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest()), principal(), ADDRESS
            ),
            False,
            ErrorCode.INVALID_REQUEST,
        ),
    ],
    ids=["no principal", "null principal", "its version", "address", "request", "not forwardable"],
)
def test_an_undecodable_envelope_is_refused_as_a_whole__kip590(
    envelope: EnvelopeRequest, of_carried: bool, code: ErrorCode
) -> None:
    assert opened(envelope) == ([], [(of_carried, code)])


def test_a_forwardable_api_that_is_not_served_is_refused_in_the_envelope__kip590() -> None:
    envelope = EnvelopeRequest(forwarded(), principal(), ADDRESS)
    assert opened(envelope, ApiKey.FETCH) == ([], [(True, ErrorCode.UNSUPPORTED_VERSION)])


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\0\x05User"])
def test_a_truncated_principal_is_invalid(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_principal(data)
    with pytest.raises(UnsupportedVersionError):
        read_principal(principal(version=1))


def test_an_invalid_principal_is_refused_with_the_reason() -> None:
    with pytest.raises(ProtocolError) as error:
        read_principal(b"\0")
    assert str(error.value) == "DefaultPrincipalData.version at byte 0: 1 bytes are no principal"
    with pytest.raises(ProtocolError) as error:
        read_principal(b"\0\0")  # only a version, without a principal
    assert "no principal" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (bytes((10, 0, 0, 9)), "10.0.0.9"),
        (bytes((255, 254, 1, 0)), "255.254.1.0"),
        (socket.inet_pton(socket.AF_INET6, "::1"), "0:0:0:0:0:0:0:1"),
        (socket.inet_pton(socket.AF_INET6, "2001:db8:0:1::ff00"), "2001:db8:0:1:0:0:0:ff00"),
        (socket.inet_pton(socket.AF_INET6, "::ffff:10.0.0.9"), "10.0.0.9"),
    ],
)
def test_addresses_are_written_as_java_writes_them(address: bytes, text: str) -> None:
    assert java_text(address) == text


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("10.0.0.9", "10.0.0.9"),
        ("10.0.0.9", "::ffff:10.0.0.9"),
        ("::ffff:10.0.0.9", "10.0.0.9"),
        ("2001:db8::7", "2001:db8:0:0:0:0:0:7"),
        ("2001:db8::7", "2001:DB8::0007"),
        ("fe80::1", "FE80:0::1"),  # an Envelope has no zones
    ],
)
def test_a_host_is_denied_behind_an_envelope_however_it_is_written(address: str, written: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    (call,), _ = opened(EnvelopeRequest(forwarded(), principal(), socket.inet_pton(family, address)))
    read = AclOperation.READ
    rules = authorizer(acl("a", read), acl("a", read, host=written, deny=True))
    assert not rules.allows(call.principal, call.host, read, AclResourceType.TOPIC, "a")
    assert rules.allows(call.principal, "10.0.0.8", read, AclResourceType.TOPIC, "a")


@pytest.mark.parametrize("size", [0, 3, 5, 15, 17])
def test_bytes_of_another_length_are_no_address(size: int) -> None:
    with pytest.raises(ValueError, match="address"):
        java_text(bytes(size))


def test_a_large_request_that_a_broker_carries_is_decoded_and_answered_in_slices(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    request = DeleteTopicsRequest([DeleteTopicState(f"topic-{one}") for one in range(5_000)], (), 1_000)
    carried = forwarded(ApiKey.DELETE_TOPICS, 6, request)
    place = harness.send(ApiKey.ENVELOPE, 0, EnvelopeRequest(carried, principal(), ADDRESS))
    behind = harness.send(ApiKey.ENVELOPE, 0, EnvelopeRequest(b"\0", principal(), ADDRESS))
    _, answer = parse_response(ApiKey.DELETE_TOPICS, 6, harness.answer(place).response_data)
    codes = [(one.name, one.error_code) for one in answer.responses]
    assert codes == [(one.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for one in request.topics]
    assert harness.answer(behind).error_code == ErrorCode.UNSUPPORTED_VERSION
    damaged = EnvelopeRequest(carried[:-9_000], principal(), ADDRESS)
    refused = harness.answer(harness.send(ApiKey.ENVELOPE, 0, damaged))
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
