"""Unusual requests: unknown APIs and versions, requests in an Envelope, hostile bytes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.acl import CLUSTER_NAME, AclOperation
from kraftd.controller_node.apis.api_58_envelope import read_principal
from kraftd.controller_node.routes import ROWS
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.raft import events as raft_events
from kraftd.requests.refusals import refuse
from kraftd.security.principals import ANONYMOUS, Principal
from kraftd.wire.api import ApiKey, request_class, valid_versions
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from tests.controller_node.harness import Harness

SERVED = sorted(row[0] for row in ROWS)

# The APIs that a controller of Apache Kafka 4.3.1 lists, by key: first and last version.
KAFKA_LISTS = {
    1: (4, 18), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3),
    32: (1, 4), 33: (0, 2), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3),
    43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 49: (0, 1), 50: (0, 0), 51: (0, 0), 52: (0, 2),
    53: (0, 1), 54: (0, 1), 55: (0, 2), 56: (2, 3), 57: (0, 2), 58: (0, 0), 59: (0, 1), 60: (0, 2),
    62: (0, 4), 63: (0, 2), 64: (0, 0), 67: (0, 0), 70: (0, 0), 73: (0, 0), 80: (0, 1), 81: (0, 0),
    82: (0, 0),
}  # fmt: skip


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def test_the_apis_of_a_kafka_controller_are_listed_with_its_versions(harness: Harness) -> None:
    listed = {api.api_key: (api.min_version, api.max_version) for api in harness.api_versions().api_keys}
    assert listed == KAFKA_LISTS


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_api_versions_is_answered_in_every_version(harness: Harness, version: int) -> None:
    answer = harness.api_versions(version)
    assert answer.error_code == ErrorCode.NONE
    names = [feature.name for feature in answer.supported_features]
    if version == 4:
        assert names == [
            "group.version", "kraft.version", "metadata.version", "share.version", "streams.version",
            "transaction.version", "eligible.leader.replicas.version",
        ]  # fmt: skip
    elif version == 3:
        assert names == ["metadata.version"]  # the only one whose lowest level is not 0


def test_api_versions_of_a_future_version_is_answered_in_version_0__kip511(harness: Harness) -> None:
    body = struct.pack(">hhih", 18, 99, 77, 4) + b"test\0" + b"whatever"
    answer = harness.answer(harness.send_frame(body, 3, 18, 99))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in answer.api_keys] == [(18, 0, 4)]


def test_invalid_software_names_are_refused(harness: Harness) -> None:
    from kraftd.messages.api_versions_request import ApiVersionsRequest

    answer = harness.ask(18, 4, ApiVersionsRequest("-bad-", "1"))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_an_api_that_is_not_served_is_refused_and_the_connection_stays(harness: Harness) -> None:
    answer = harness.ask(ApiKey.METADATA, 9, MetadataRequest([MetadataRequestTopic(name="t")]))
    assert [(t.name, t.error_code) for t in answer.topics] == [("t", ErrorCode.UNSUPPORTED_VERSION)]
    assert harness.api_versions().error_code == ErrorCode.NONE
    assert not harness.closed


@pytest.mark.parametrize("key", sorted(set(ApiKey) - {ApiKey.API_VERSIONS}))
@pytest.mark.parametrize("version", [-1, 1_000])
def test_an_unknown_version_closes_its_connection(tmp_path: Path, key: int, version: int) -> None:
    """An answer without rows would look like success: CreateAcls v0 from before Kafka 2.0, say."""
    harness = Harness(tmp_path)
    place = harness.send_frame(struct.pack(">hhihBB", key, version, 77, -1, 0, 0))
    assert place not in harness.answers and harness.closed
    assert harness.node.boundary.stats.not_served == 1


def test_an_unknown_api_closes_its_connection(harness: Harness) -> None:
    place = harness.send_frame(struct.pack(">hhih", 9_999, 0, 77, -1))
    assert place not in harness.answers and harness.closed


@pytest.mark.parametrize("key", SERVED)
def test_every_served_api_can_be_refused_in_every_version(key: int) -> None:
    first, last = valid_versions(key)
    for version in range(first, last + 1):
        response = refuse(key, version, request_class(key)(), ErrorCode.NOT_CONTROLLER, "text")
        encode_bytes(response, version)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=200))
def test_arbitrary_frames_are_answered_or_cost_their_connection(harness: Harness, data: bytes) -> None:
    before = len(harness.answers) + len(harness.closed)
    harness.closed.clear()
    before = len(harness.answers)
    harness.send_frame(data or b"\0", 5)
    assert len(harness.answers) > before or 5 in harness.closed
    assert harness.api_versions().error_code == ErrorCode.NONE


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(key=st.sampled_from(SERVED), body=st.binary(max_size=80), data=st.data())
def test_arbitrary_bodies_of_served_apis_are_answered_or_cost_their_connection(
    harness: Harness, key: int, body: bytes, data: Any
) -> None:
    version = data.draw(st.integers(*valid_versions(key)))
    frame = struct.pack(">hhih", key, version, 77, -1) + b"\0" + body
    harness.closed.clear()
    place = harness.send_frame(frame, 6)
    parked = place[0] in harness.node.core_answers.waiting
    assert place in harness.answers or 6 in harness.closed or parked
    harness.node.core_answers.waiting.clear()


def test_bytes_behind_a_request_are_ignored_as_kafka_does(harness: Harness) -> None:
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    frame = b"".join(encode_request(ApiKey.DESCRIBE_QUORUM, 2, 77, "test", request))[4:]
    place = harness.send_frame(frame + b"\0\0\0", 1, ApiKey.DESCRIBE_QUORUM, 2)
    assert harness.answer(place).error_code == ErrorCode.NONE
    unserved = b"".join(encode_request(ApiKey.METADATA, 12, 77, "test", MetadataRequest([])))[4:]
    place = harness.send_frame(unserved + b"\0\0\0", 1, ApiKey.METADATA, 12)
    assert harness.answer(place) is not None and not harness.closed
    principal = struct.pack(">h", 0) + encode_bytes(DefaultPrincipalData("User", "alice", False), 0)
    fields = {"data": frame + b"\0", "principal": principal + b"\0"}
    envelope = carried(request, ApiKey.DESCRIBE_QUORUM, 2, **fields)
    assert harness.ask(ApiKey.ENVELOPE, 0, envelope).error_code == ErrorCode.NONE


def test_refusal_that_quotes_a_long_text_is_truncated(harness: Harness) -> None:
    long = "x" * 32_767
    features = UpdateFeaturesRequest(30_000, [FeatureUpdateKey(long, 1, upgrade_type=1)])
    updated = harness.ask(ApiKey.UPDATE_FEATURES, 2, features)
    assert updated.error_code == ErrorCode.INVALID_UPDATE_VERSION and long[:1_000] in updated.error_message
    removed = harness.ask(ApiKey.REMOVE_RAFT_VOTER, 0, RemoveRaftVoterRequest(long, 100, bytes(15) + b"v"))
    assert removed.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID and long[:1_000] in removed.error_message
    assert not harness.node.boundary.failures


def carried(request: Any, key: int, version: int, **fields: Any) -> EnvelopeRequest:
    principal = struct.pack(">h", 0) + encode_bytes(DefaultPrincipalData("User", "alice", False), 0)
    frame = b"".join(encode_request(key, version, 5, "client", request))[4:]
    return EnvelopeRequest(
        fields.get("data", frame),
        fields.get("principal", principal),
        fields.get("address", bytes([10, 0, 0, 7])),
    )


def test_a_forwarded_request_is_answered_in_the_envelope(harness: Harness) -> None:
    harness.unfenced()
    request = CreateTopicsRequest([CreatableTopic("forwarded", 1, 1)], 1_000)
    answer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, ApiKey.CREATE_TOPICS, 7))
    assert answer.error_code == ErrorCode.NONE
    header, inner = parse_response(ApiKey.CREATE_TOPICS, 7, answer.response_data)
    assert header.correlation_id == 5
    assert [(t.name, t.error_code) for t in inner.topics] == [("forwarded", ErrorCode.NONE)]


def test_a_forwarded_quorum_request_is_answered_by_the_core(harness: Harness) -> None:
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    answer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, ApiKey.DESCRIBE_QUORUM, 2))
    _, inner = parse_response(ApiKey.DESCRIBE_QUORUM, 2, answer.response_data)
    assert inner.topics[0].partitions[0].leader_id == 100


class OnlyBrokers:
    """An authorizer that allows all operations of a broker, here ANONYMOUS, and none of a client."""

    def __init__(self) -> None:
        self.checks: list[tuple[str, str, int, str]] = []

    def allows(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        self.checks.append((str(principal), host, operation, name))
        return principal is ANONYMOUS

    def reason(self, *_: object) -> str:
        return "only brokers may"


def test_an_envelope_is_authorized_for_the_broker_and_its_request_for_the_client(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer = OnlyBrokers()
    monkeypatch.setattr(harness.node.boundary, "_authorizer", authorizer)
    request = UnregisterBrokerRequest(7)
    answer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, ApiKey.UNREGISTER_BROKER, 0))
    assert answer.error_code == ErrorCode.NONE
    _, inner = parse_response(ApiKey.UNREGISTER_BROKER, 0, answer.response_data)
    assert inner.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert authorizer.checks == [
        ("User:ANONYMOUS", "127.0.0.1", AclOperation.CLUSTER_ACTION, CLUSTER_NAME),
        ("User:alice", "10.0.0.7", AclOperation.ALTER, CLUSTER_NAME),
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"principal": b""}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"principal": struct.pack(">h", 9) + b"\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"address": b"abc"}, ErrorCode.INVALID_REQUEST),
        ({"data": b""}, ErrorCode.UNSUPPORTED_VERSION),
        ({"data": struct.pack(">hhih", 19, 99, 1, -1)}, ErrorCode.UNSUPPORTED_VERSION),
        ({"data": struct.pack(">hhih", 19, 7, 1, -1) + b"\0\xff"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"data": struct.pack(">hhih", 18, 0, 1, -1)}, ErrorCode.INVALID_REQUEST),
        ({"data": struct.pack(">hhih", 63, 2, 1, -1) + b"\0"}, ErrorCode.INVALID_REQUEST),  # cut short
    ],
)
def test_an_envelope_that_cannot_be_decoded_is_refused_as_a_whole(
    harness: Harness, fields: dict[str, bytes], code: ErrorCode
) -> None:
    answer = harness.ask(
        ApiKey.ENVELOPE, 0, carried(CreateTopicsRequest(), ApiKey.CREATE_TOPICS, 7, **fields)
    )
    assert (answer.error_code, answer.response_data) == (code, None)


def test_a_standby_refuses_a_forwarded_request_at_the_envelope(harness: Harness) -> None:
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    request = CreateTopicsRequest([CreatableTopic("forwarded", 1, 1)], 1_000)
    answer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, ApiKey.CREATE_TOPICS, 7))
    assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


def test_a_standby_refuses_a_forwarded_describe_quorum_at_the_envelope_too(harness: Harness) -> None:
    """Otherwise a broker that sends no other requests would never look for another controller."""
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    answer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, ApiKey.DESCRIBE_QUORUM, 2))
    assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)
    direct = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, request)
    assert direct.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_principals_are_parsed() -> None:
    data = struct.pack(">h", 0) + encode_bytes(DefaultPrincipalData("User", "bob", True), 0)
    assert str(read_principal(data)) == "User:bob"
    assert read_principal(data).token_authenticated


def test_a_refused_create_names_every_topic_and_no_partitions_of_it() -> None:
    request = CreateTopicsRequest([CreatableTopic("a", 3, 1), CreatableTopic("b")])
    answer = refuse(ApiKey.CREATE_TOPICS, 7, request, ErrorCode.POLICY_VIOLATION, "too much")
    again = decode(type(answer), 7, encode_bytes(answer, 7))
    assert [(t.name, t.error_code, t.error_message) for t in again.topics] == [  # type: ignore[attr-defined]
        ("a", ErrorCode.POLICY_VIOLATION, "too much"),
        ("b", ErrorCode.POLICY_VIOLATION, "too much"),
    ]
    assert {(t.num_partitions, t.replication_factor) for t in again.topics} == {(-1, -1)}  # type: ignore[attr-defined]
