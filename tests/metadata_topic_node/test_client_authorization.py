"""Requests of a client that the ACLs of its principal allow; the decisions are a broker's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.answers.effects import Answered
from kraftd.answers.operations import DECISION_US
from kraftd.ground.pace import MAX_SLICE_WORK_US
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.fetch_request import ReplicaState
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.metadata.state import AclState
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.security.principals import Principal
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness, consuming

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def allow(type: AclResourceType, name: str, operation: AclOperation) -> AclState:
    literal, permission = AclPatternType.LITERAL, AclPermission.ALLOW
    return AclState(type, name, literal, "User:ANONYMOUS", "*", operation, permission)


def grant(authorizer: StandardAuthorizer, *acls: AclState) -> None:
    """Replace all ACLs by these."""
    authorizer.begin_load()
    authorizer.change((), acls)
    authorizer.end_load()


@pytest.fixture
def authorizer() -> StandardAuthorizer:
    return StandardAuthorizer(AuthorizerSettings())


@pytest.fixture
def harness(tmp_path: Path, authorizer: StandardAuthorizer) -> ClientHarness:
    """A leader with broker 1 and the topics a and b; the client has no permission yet."""
    leader = ClientHarness(tmp_path, authorizer)
    leader.start()
    leader.unfenced(1)
    leader.create("a", "b")
    grant(authorizer)
    return leader


def fetch_errors(harness: ClientHarness, session_id: int = 0, session_epoch: int = -1) -> list[int]:
    fetch = consuming(
        0, session_id=session_id, session_epoch=session_epoch, partitions=session_epoch < 1, max_wait_ms=0
    )
    answer = harness.client_ask(ApiKey.FETCH, 17, fetch)
    return [one.error_code for topic in answer.responses for one in topic.partitions]


def test_reading_the_metadata_log_requires_read_on_its_topic(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    assert fetch_errors(harness) == [DENIED]
    assert harness.clients.boundary.authorizations.denied == 1
    grant(authorizer, allow(TOPIC, METADATA_TOPIC, AclOperation.DESCRIBE))
    assert fetch_errors(harness) == [DENIED]
    grant(authorizer, allow(TOPIC, METADATA_TOPIC, AclOperation.READ))
    assert fetch_errors(harness) == [0]


def test_an_acl_for_all_topics_or_a_prefix_does_not_open_the_metadata_log(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    by_name = allow(TOPIC, METADATA_TOPIC, AclOperation.READ)
    patterns = (
        allow(TOPIC, "*", AclOperation.ALL),
        msgspec.structs.replace(by_name, resource_name="__", pattern_type=AclPatternType.PREFIXED),
        msgspec.structs.replace(by_name, pattern_type=AclPatternType.PREFIXED),
    )
    for acl in patterns:
        grant(authorizer, acl)
        assert fetch_errors(harness) == [DENIED]
        rules = [line.fields["rule"] for line in harness.audited if line.event == "authorization denied"]
        assert rules[-1] == "no ACL with exactly this name allows it"
    grant(authorizer, *patterns, by_name)
    assert fetch_errors(harness) == [0]
    grant(authorizer, by_name, msgspec.structs.replace(patterns[1], permission_type=AclPermission.DENY))
    assert fetch_errors(harness) == [DENIED]


@pytest.mark.parametrize(
    "settings",
    [
        AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS"})),
        AuthorizerSettings(allow_if_no_acl=True),
    ],
)
def test_super_users_and_open_clusters_need_no_acl_to_read_the_metadata_log(
    tmp_path: Path, settings: AuthorizerSettings
) -> None:
    authorizer = StandardAuthorizer(settings)
    harness = ClientHarness(tmp_path, authorizer)
    harness.start()
    grant(authorizer)
    assert fetch_errors(harness) == [0]
    grant(authorizer, allow(TOPIC, "*", AclOperation.READ))
    assert fetch_errors(harness) == [DENIED if settings.allow_if_no_acl else 0]


def test_an_authorizer_without_decisions_by_name_decides_on_the_name(tmp_path: Path) -> None:
    class Own:
        def allows(self, _principal: Principal, _host: str, _operation: int, _type: int, name: str) -> bool:
            return name == METADATA_TOPIC

    harness = ClientHarness(tmp_path, Own())  # type: ignore[arg-type]
    harness.start()
    assert fetch_errors(harness) == [0]


def test_a_replica_needs_cluster_action_to_be_refused_as_one(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    fetch = consuming(0)
    fetch.replica_state = ReplicaState(7, -1)
    acl = allow(CLUSTER, "kafka-cluster", AclOperation.CLUSTER_ACTION)
    for acls, error in (((), DENIED), ((acl,), ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        grant(authorizer, *acls)
        (topic,) = harness.client_ask(ApiKey.FETCH, 17, fetch).responses
        assert topic.partitions[0].error_code == error


def test_session_repeats_a_denial_until_the_acl_changes__kip227(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    first = harness.client_ask(ApiKey.FETCH, 17, consuming(0, session_epoch=0))
    assert fetch_errors(harness, first.session_id, 1) == [DENIED]
    denied = harness.clients.boundary.authorizations.denied
    assert fetch_errors(harness, first.session_id, 2) == [DENIED]
    assert harness.clients.boundary.authorizations.denied == denied + 1
    grant(authorizer, allow(TOPIC, METADATA_TOPIC, AclOperation.READ))
    assert fetch_errors(harness, first.session_id, 3) == [0]
    grant(authorizer)
    harness.create("news")
    assert fetch_errors(harness, first.session_id, 4) == [DENIED]


def test_a_denied_fetch_of_any_topic_is_in_the_audit_stream(harness: ClientHarness) -> None:
    fetch = consuming(0)
    fetch.topics[0].topic_id = harness.node.image.topic_names()["a"]
    assert harness.client_ask(ApiKey.FETCH, 17, fetch).responses[0].partitions[0].error_code == DENIED
    (line,) = [line.fields for line in harness.audited if line.event == "authorization denied"]
    assert line["resource"] == "TOPIC:LITERAL:a" and line["api"] == "FETCH" and line["client_id"] == "test"


def test_fetch_before_acls_are_loaded_is_neither_denied_nor_allowed(tmp_path: Path) -> None:
    harness = ClientHarness(tmp_path, StandardAuthorizer(AuthorizerSettings()))
    harness.start()
    answer = harness.client_ask(ApiKey.FETCH, 17, consuming(0))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_metadata_omits_topics_that_the_client_may_not_describe(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    def errors(*names: str) -> dict[str | None, int]:
        topics = [MetadataRequestTopic(name=name) for name in names] if names else None
        answer = harness.client_ask(ApiKey.METADATA, 13, MetadataRequest(topics))
        return {topic.name: topic.error_code for topic in answer.topics}

    assert errors() == {}
    assert errors("a", "missing", METADATA_TOPIC) == dict.fromkeys(("a", "missing", METADATA_TOPIC), DENIED)
    grant(authorizer, allow(TOPIC, "a", AclOperation.READ))
    assert errors() == {"a": 0} and errors("a", "b") == {"a": 0, "b": DENIED}


def test_listing_offsets_requires_describe(harness: ClientHarness, authorizer: StandardAuthorizer) -> None:
    def error() -> int:
        topic = ListOffsetsTopic(METADATA_TOPIC, [ListOffsetsPartition(0, -1, -1)])
        answer = harness.client_ask(ApiKey.LIST_OFFSETS, 11, ListOffsetsRequest(-1, 0, [topic]))
        return int(answer.topics[0].partitions[0].error_code)

    assert error() == DENIED
    grant(authorizer, allow(TOPIC, METADATA_TOPIC, AclOperation.DESCRIBE))
    assert error() == 0


def test_an_unknown_type_of_resource_refuses_a_whole_request_for_configs(harness: ClientHarness) -> None:
    named = [DescribeConfigsResource(type, name) for type, name in ((2, "a"), (2, METADATA_TOPIC), (4, "1"))]
    for unknown, codes in (([], {DENIED, 31}), ([DescribeConfigsResource(5, "x")], {42})):
        request = DescribeConfigsRequest([*named, *unknown])
        answer = harness.client_ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
        assert {one.error_code for one in answer.results} == codes


def test_denials_precede_the_refusals_of_kip630(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    data = TopicProduceData(METADATA_TOPIC, partition_data=[PartitionProduceData(0, b"")])

    def errors() -> tuple[int, int]:
        produced = harness.client_ask(ApiKey.PRODUCE, 12, ProduceRequest(None, -1, 100, [data]))
        deletion = DeleteTopicsRequest([DeleteTopicState(METADATA_TOPIC)], timeout_ms=1000)
        deleted = harness.client_ask(ApiKey.DELETE_TOPICS, 6, deletion)
        return produced.responses[0].partition_responses[0].error_code, deleted.responses[0].error_code

    harness.node.boundary._authorizer = authorizer
    assert errors() == (DENIED, DENIED)
    grant(authorizer, allow(TOPIC, METADATA_TOPIC, AclOperation.ALL))
    assert errors() == (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION)


def test_broker_is_asked_only_for_groups_that_the_client_may_describe(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    for version, request in (
        (3, FindCoordinatorRequest("g")),
        (6, FindCoordinatorRequest("", 0, ("g", "h"))),
    ):
        harness.client_send(ApiKey.FIND_COORDINATOR, version, request)
    assert not harness.sent_to_nodes
    grant(authorizer, allow(GROUP, "h", AclOperation.READ))
    place = harness.client_send(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest("", 0, ("g", "h")))
    (ask,) = harness.sent_to_nodes
    assert (ask.message.coordinator_keys, ask.listener) == (("h",), "PLAINTEXT")
    found = FindCoordinatorResponse(coordinators=[Coordinator("h", 1, "127.0.0.1", 9093)])
    harness.client_step(Answered(ask.request_id, found))
    results = [(one.key, one.node_id, one.error_code) for one in harness.answer(place).coordinators]
    assert results == [("g", -1, ErrorCode.GROUP_AUTHORIZATION_FAILED), ("h", 1, 0)]


def test_transactional_ids_and_share_groups_require_their_own_operations(harness: ClientHarness) -> None:
    transaction = harness.client_ask(
        ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest("", 1, ("writer",))
    ).coordinators
    assert [one.error_code for one in transaction] == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    early = harness.client_ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest("g:t:0", 2))
    assert early.error_code == ErrorCode.INVALID_REQUEST  # no version of share partitions
    shares = FindCoordinatorRequest("", 2, ("g:t:0",))
    (shared,) = harness.client_ask(ApiKey.FIND_COORDINATOR, 6, shares).coordinators
    assert shared.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "acl",
    [
        allow(CLUSTER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
        allow(TOPIC, "a", AclOperation.WRITE),
    ],
)
def test_a_producer_id_requires_idempotent_write_or_write_on_any_topic(
    harness: ClientHarness, authorizer: StandardAuthorizer, acl: AclState
) -> None:
    request = InitProducerIdRequest(None, 1000)
    refused = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 5, request)
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED and not harness.sent_to_nodes
    grant(authorizer, acl)
    harness.client_send(ApiKey.INIT_PRODUCER_ID, 5, request)
    assert [type(ask.message).__name__ for ask in harness.sent_to_nodes] == ["InitProducerIdRequest"]
    named = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 5, InitProducerIdRequest("writer", 1000))
    assert named.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_delegation_token_is_refused_to_an_anonymous_client__kip48(harness: ClientHarness) -> None:
    answer = harness.client_ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest())
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_denied_topics_are_decided_in_several_callbacks_too(
    harness: ClientHarness, authorizer: StandardAuthorizer
) -> None:
    """Each topic costs a decision; the operations on a topic cost eight more."""
    harness.create(*[f"hidden-{number}" for number in range(1_000)])
    before = harness.callbacks_run
    assert harness.client_ask(ApiKey.METADATA, 12, MetadataRequest(None)).topics == []
    assert harness.callbacks_run - before >= 1_000 * DECISION_US // MAX_SLICE_WORK_US
    grant(authorizer, allow(TOPIC, "*", AclOperation.ALL))
    before = harness.callbacks_run
    request = MetadataRequest(None, include_topic_authorized_operations=True)
    assert len(harness.client_ask(ApiKey.METADATA, 12, request).topics) > 1_000
    assert harness.callbacks_run - before >= 9 * 1_000 * DECISION_US // MAX_SLICE_WORK_US
