"""Requests of admin clients that a client listener answers from its metadata, and those that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.configs.description import RESOURCE_US
from kraftd.controller.quotas.describe import describe_client_quotas
from kraftd.ground.pace import MAX_SLICE_WORK_US, at_once
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.alter_configs_request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraftd.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftd.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kraftd.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.registry import APIS
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.metadata.state import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraftd.requests import intake
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.engine import C_ENGINE
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness
from tests.metadata_topic_node.test_client_authorization import allow, grant

TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
ANY_ACL = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


def limit(controller: ClientHarness, user: str | None, byte_rate: float) -> None:
    """Set a user's quota."""
    entry = EntryData([EntityData("user", user)], [OpData("producer_byte_rate", byte_rate)])
    answer = controller.client_ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]))
    assert answer.entries[0].error_code == 0


def quotas_of(controller: ClientHarness, component: ComponentData) -> dict[str | None, float]:
    """The described byte rates, by user."""
    answer = controller.client_ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest([component]))
    assert answer.error_code == 0
    return {one.entity[0].entity_name: one.values[0].value for one in answer.entries}


def test_api_versions_lists_the_apis_of_a_broker_in_its_versions(controller: ClientHarness) -> None:
    answer = controller.client_ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    versions = {
        key: (row[5], row[6] - row[9])  # the newest version may be unstable
        for key, row in APIS.items()
        if "broker" in row[8] and key not in TELEMETRY
    }
    versions[ApiKey.PRODUCE] = (0, versions[ApiKey.PRODUCE][1])  # KAFKA-18659
    assert {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys} == versions


def test_client_quotas_are_described_by_any_node__kip546(controller: ClientHarness) -> None:
    limit(controller, "alice", 100.0)
    limit(controller, None, 5.0)
    assert quotas_of(controller, ComponentData("user", 0, "alice")) == {"alice": 100.0}
    assert quotas_of(controller, ComponentData("user", 1, None)) == {None: 5.0}
    assert quotas_of(controller, ComponentData("user", 2, None)) == {"alice": 100.0, None: 5.0}


def test_described_quotas_have_no_error_text_and_a_refusal_no_entries(controller: ClientHarness) -> None:
    for kind, error, text, entries in (("user", 0, "", []), ("planet", 35, None, None)):
        request = DescribeClientQuotasRequest([ComponentData(kind, 2, None)])
        answer = controller.client_ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)
        assert (answer.error_code, answer.entries) == (error, entries)
        assert text is None or answer.error_message == text
    for users in ([], None):
        request = DescribeUserScramCredentialsRequest(users)
        answer = controller.client_ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
        assert (answer.error_code, answer.error_message) == (0, "")


def test_quotas_may_change_between_the_callbacks_that_describe_them(controller: ClientHarness) -> None:
    quotas = controller.node.image.quotas
    quotas |= {(("user", f"u{number}"),): {"producer_byte_rate": 1.0} for number in range(2_000)}
    everything = DescribeClientQuotasRequest([ComponentData("user", 2, None)])
    slices = describe_client_quotas.begin(controller.view.context, everything, 1)
    next(slices)
    limit(controller, "alice", 100.0)
    assert len(at_once(slices).answer.entries) == 2_000


def test_config_resources_are_listed_by_type(controller: ClientHarness) -> None:
    config = AlterableConfig("interval.ms", "1000")
    change = AlterConfigsRequest([AlterConfigsResource(CLIENT_METRICS_RESOURCE, "often", [config])])
    assert controller.client_ask(ApiKey.ALTER_CONFIGS, 2, change).responses[0].error_code == 0

    def listed(version: int, *types: int) -> set[tuple[int, str]]:
        answer = controller.client_ask(
            ApiKey.LIST_CONFIG_RESOURCES, version, ListConfigResourcesRequest(types)
        )
        assert answer.error_code == 0
        return {(one.resource_type, one.resource_name) for one in answer.config_resources}

    topics = {(TOPIC_RESOURCE, METADATA_TOPIC), (TOPIC_RESOURCE, "t")}
    brokers = {(BROKER_RESOURCE, "1"), (8, "1")}
    assert listed(0) == {(CLIENT_METRICS_RESOURCE, "often")}
    assert listed(1, TOPIC_RESOURCE) == topics
    assert listed(1, GROUP_RESOURCE) == set()
    assert listed(1) == {*topics, *brokers, *listed(0)}
    unknown = controller.client_ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest((77,)))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_denied_request_for_a_token_has_its_principals_and_no_times(controller: ClientHarness) -> None:
    def answer(key: ApiKey, version: int, request: Any) -> Any:
        return controller.client_ask(key, version, request)

    denied = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    for version, requester in ((2, ""), (3, "ANONYMOUS")):
        request = CreateDelegationTokenRequest()
        if version == 3:
            request = CreateDelegationTokenRequest("User", "bob")
        found = answer(ApiKey.CREATE_DELEGATION_TOKEN, version, request)
        owner = "bob" if version == 3 else "ANONYMOUS"
        assert (found.error_code, found.principal_type, found.principal_name) == (denied, "User", owner)
        assert found.token_requester_principal_name == requester
        times = found.issue_timestamp_ms, found.expiry_timestamp_ms, found.max_timestamp_ms
        assert times == (-1, -1, -1)
    renewed = answer(ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(b"x", 1))
    expired = answer(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ExpireDelegationTokenRequest(b"x", 1))
    for found in (renewed, expired):
        assert (found.error_code, found.expiry_timestamp_ms) == (denied, -1)


def test_users_acls_and_tokens_are_described_from_the_nodes_own_image(controller: ClientHarness) -> None:
    upsertion = ScramCredentialUpsertion("alice", 2, 4096, b"salt", b"password")
    change = AlterUserScramCredentialsRequest([], [upsertion])
    assert controller.client_ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, change).results[0].error_code == 0
    users = controller.client_ask(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(None)
    )
    assert [(one.user, one.error_message) for one in users.results] == [("alice", "")]
    acls = controller.client_ask(ApiKey.DESCRIBE_ACLS, 3, ANY_ACL)
    assert acls.error_code == ErrorCode.SECURITY_DISABLED
    tokens = controller.client_ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, DescribeDelegationTokenRequest(None))
    assert tokens.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(
    ("key", "version", "request_", "operation"),
    [
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest(), AclOperation.DESCRIBE_CONFIGS),
        (ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest(), AclOperation.DESCRIBE_CONFIGS),
        (ApiKey.DESCRIBE_ACLS, 3, ANY_ACL, AclOperation.DESCRIBE),
        (
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            0,
            DescribeUserScramCredentialsRequest(None),
            AclOperation.DESCRIBE,
        ),
    ],
)
def test_descriptions_require_the_same_cluster_operation_as_at_a_broker(
    tmp_path: Path, key: ApiKey, version: int, request_: Any, operation: AclOperation
) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    controller = ClientHarness(tmp_path, authorizer)
    controller.node.boundary._authorizer = authorizer
    controller.start()
    grant(authorizer)
    assert controller.client_ask(key, version, request_).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    grant(authorizer, allow(AclResourceType.CLUSTER, "kafka-cluster", operation))
    assert controller.client_ask(key, version, request_).error_code == 0


@pytest.mark.skipif(C_ENGINE is None, reason="the engine in Python decodes everything")
def test_a_large_filter_of_a_client_without_the_right_is_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    controller = ClientHarness(tmp_path, authorizer)
    controller.start()
    grant(authorizer)
    monkeypatch.setattr(intake, "decode_prefix", None)
    request = DescribeClientQuotasRequest([ComponentData("user", 0, f"n{number}") for number in range(2_000)])
    answer = controller.client_ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)
    assert (answer.error_code, answer.entries) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


def test_requests_that_only_a_broker_can_answer_are_refused(controller: ClientHarness) -> None:
    producers = controller.client_ask(
        ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest([TopicRequest("t", (0,))])
    )
    (partition,) = producers.topics[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    dirs = controller.client_ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None))
    assert dirs.error_code == ErrorCode.LOG_DIR_NOT_FOUND


@pytest.mark.parametrize(
    ("key", "version", "request_"),
    [(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()), (ApiKey.LIST_TRANSACTIONS, 2, ListTransactionsRequest())],
)
def test_listings_of_groups_are_empty_with_brokers_and_refused_without(
    controller: ClientHarness, monkeypatch: pytest.MonkeyPatch, key: ApiKey, version: int, request_: Any
) -> None:
    assert controller.client_ask(key, version, request_).error_code == 0
    monkeypatch.setattr(controller.node.image, "brokers", {})
    assert controller.client_ask(key, version, request_).error_code == ErrorCode.NOT_COORDINATOR


def test_configs_of_many_topics_are_described_in_several_callbacks(controller: ClientHarness) -> None:
    """Unknown topics count as work of a callback, too."""
    controller.create(*[f"t-{number}" for number in range(1_000)])
    for prefix in ("t", "none"):
        resources = [
            DescribeConfigsResource(TOPIC_RESOURCE, f"{prefix}-{number}", None) for number in range(1_000)
        ]
        before = controller.callbacks_run
        answer = controller.client_ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources))
        expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if prefix == "none" else 0
        assert {one.error_code for one in answer.results} == {expected}
        assert controller.callbacks_run - before >= 1_000 * RESOURCE_US // MAX_SLICE_WORK_US
