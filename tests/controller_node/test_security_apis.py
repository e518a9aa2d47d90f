"""Requests about ACLs, SCRAM users, quotas and delegation tokens, sent directly or in an Envelope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.controller_node.apis.token_requests import may_change_tokens
from kraftd.messages import alter_configs_request, incremental_alter_configs_request
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.alter_configs_request import AlterConfigsRequest
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraftd.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.metadata.image import Image
from kraftd.metadata.state import AclState
from kraftd.requests.call import Call
from kraftd.requests.refusals import refuse
from kraftd.security.authorizer import AuthorizerSettings, StandardAuthorizer
from kraftd.types import Endpoint
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from tests.controller_node.harness import Harness
from tests.controller_node.test_requests import carried

ALLOW_READ = AclCreation(2, "orders", 3, "User:alice", "*", 3, 3)
ANYTHING = (1, None, 1, None, None, 1, 1)
SASL_PLAINTEXT = 2
BROKER_LOGGER = 8  # a type of resource


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


@pytest.fixture
def secured(tmp_path: Path) -> Harness:
    """A controller with an authorizer that allows every principal, tokens, and a listener with SASL."""
    harness = Harness(tmp_path, delegation__token__secret__key="secret").start()
    authorizer = StandardAuthorizer(
        AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS", "User:alice"}))
    )
    authorizer.end_load()
    harness.node.boundary._authorizer = authorizer
    endpoints = (Endpoint("CONTROLLER", "127.0.0.1", 9093, SASL_PLAINTEXT),)
    harness.node.identity = msgspec.structs.replace(harness.node.identity, endpoints=endpoints)
    return harness


def loaded_again(harness: Harness) -> Image:
    """The image that is loaded from a snapshot of this controller's image."""
    image = Image()
    image.apply_all([record.message for record in harness.node.image.records()], 0, 1, of_snapshot=True)
    return image


def test_without_an_authorizer_acls_are_refused_as_disabled(harness: Harness) -> None:
    disabled = ErrorCode.SECURITY_DISABLED
    assert harness.ask(ApiKey.DESCRIBE_ACLS, 3, DescribeAclsRequest(*ANYTHING)).error_code == disabled
    (result,) = harness.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([ALLOW_READ])).results
    assert (result.error_code, result.error_message) == (disabled, "No Authorizer is configured.")
    (refused,) = harness.ask(
        ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([DeleteAclsFilter(*ANYTHING)])
    ).filter_results
    assert (refused.error_code, refused.error_message) == (disabled, "No Authorizer is configured.")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_acl_is_created_described_in_a_snapshot_and_deleted(secured: Harness, version: int) -> None:
    (result,) = secured.ask(ApiKey.CREATE_ACLS, version, CreateAclsRequest([ALLOW_READ])).results
    assert result.error_code == 0
    described = secured.ask(ApiKey.DESCRIBE_ACLS, version, DescribeAclsRequest(*ANYTHING))
    assert [(one.resource_name, one.acls[0].principal) for one in described.resources] == [
        ("orders", "User:alice")
    ]
    assert loaded_again(secured).acls == secured.node.image.acls
    request = DeleteAclsRequest([DeleteAclsFilter(*ANYTHING)])
    (removed,) = secured.ask(ApiKey.DELETE_ACLS, version, request).filter_results
    assert [acl.resource_name for acl in removed.matching_acls] == ["orders"]
    assert not secured.node.image.acls


def test_acls_that_a_broker_forwards_are_created(secured: Harness) -> None:
    request = carried(CreateAclsRequest([ALLOW_READ]), ApiKey.CREATE_ACLS, 3)
    answer = secured.ask(ApiKey.ENVELOPE, 0, request)
    _, inner = parse_response(ApiKey.CREATE_ACLS, 3, answer.response_data)
    assert [result.error_code for result in inner.results] == [0]
    assert len(secured.node.image.acls) == 1


@pytest.mark.parametrize("users", [None, []])
def test_all_scram_users_are_described_also_with_null_users(
    harness: Harness, users: list[Any] | None
) -> None:
    upsertion = ScramCredentialUpsertion("bob", 2, 8192, b"salt", b"salted")
    altered = harness.ask(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest([], [upsertion])
    )
    assert [(one.user, one.error_code) for one in altered.results] == [("bob", 0)]
    request = DescribeUserScramCredentialsRequest(users)
    described = harness.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
    assert [(one.user, one.credential_infos[0].iterations) for one in described.results] == [("bob", 8192)]
    assert loaded_again(harness).scram == harness.node.image.scram


def test_a_quota_of_an_address_is_set_and_survives_a_snapshot(harness: Harness) -> None:
    entry = EntryData([EntityData("ip", "10.0.0.1")], [OpData("connection_creation_rate", 3.0, False)])
    answer = harness.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]))
    assert [one.error_code for one in answer.entries] == [0]
    assert loaded_again(harness).quotas == {(("ip", "10.0.0.1"),): {"connection_creation_rate": 3.0}}


def test_an_empty_entity_is_refused(harness: Harness) -> None:
    answer = harness.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([EntryData([], [])]))
    assert [one.error_code for one in answer.entries] == [ErrorCode.INVALID_REQUEST]


def token_answers(harness: Harness, made: bytes) -> list[int]:
    return [
        harness.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest(None, None)).error_code,
        harness.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(made)).error_code,
        harness.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ExpireDelegationTokenRequest(made)).error_code,
        harness.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, DescribeDelegationTokenRequest(None)).error_code,
    ]


def test_requests_for_tokens_over_plaintext_are_refused(harness: Harness) -> None:
    assert token_answers(harness, b"") == [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED] * 4


def test_a_broker_forwards_token_requests_over_plaintext(harness: Harness) -> None:
    for key, version, request in (
        (ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest(None, None)),
        (ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(b"")),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ExpireDelegationTokenRequest(b"")),
    ):
        outer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, key, version))
        _, answer = parse_response(key, version, bytes(outer.response_data))
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED  # no secret key, but allowed


@pytest.mark.parametrize(("protocol", "is_allowed"), [("SASL_PLAINTEXT", True), ("PLAINTEXT", False)])
def test_the_listener_of_a_broker_in_this_process_counts_for_tokens(
    tmp_path: Path, protocol: str, is_allowed: bool
) -> None:
    harness = Harness(
        tmp_path,
        process__roles="broker,controller",
        listeners="CONTROLLER://127.0.0.1:9093,CLIENTS://127.0.0.1:9092,INTERNAL://127.0.0.1:9094",
        listener__security__protocol__map=(f"CONTROLLER:PLAINTEXT,CLIENTS:{protocol},INTERNAL:PLAINTEXT"),
        inter__broker__listener__name="INTERNAL",
        sasl__enabled__mechanisms="SCRAM-SHA-256",
    )
    call = Call(1, 0, "CLIENTS", "127.0.0.1", ApiKey.CREATE_DELEGATION_TOKEN, 3, 7, "test", None)
    assert may_change_tokens(harness.node, call) == is_allowed


def test_a_token_is_created_renewed_described_and_expired(secured: Harness) -> None:
    made = secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest(None, None))
    assert (made.error_code, made.principal_name) == (0, "ANONYMOUS")
    renewed = secured.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(made.hmac, -1))
    assert renewed.error_code == 0
    described = secured.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, DescribeDelegationTokenRequest(None))
    assert [(one.token_id, one.hmac) for one in described.tokens] == [(made.token_id, made.hmac)]
    assert loaded_again(secured).delegation_tokens == secured.node.image.delegation_tokens
    request = ExpireDelegationTokenRequest(made.hmac, -1)
    assert secured.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, request).error_code == 0
    assert not secured.node.image.delegation_tokens


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tokens_are_made_and_described_in_every_version(secured: Harness, version: int) -> None:
    made = secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, version, CreateDelegationTokenRequest())
    assert (made.error_code, made.principal_name) == (0, "ANONYMOUS")
    described = secured.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, DescribeDelegationTokenRequest(None))
    (token,) = described.tokens
    assert (described.error_code, token.token_id, token.principal_name) == (0, made.token_id, "ANONYMOUS")
    requester = "ANONYMOUS" if version >= 3 else ""
    assert made.token_requester_principal_name == token.token_requester_principal_name == requester


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_refused_token_is_answered_in_every_version(harness: Harness, version: int) -> None:
    answer = harness.ask(ApiKey.CREATE_DELEGATION_TOKEN, version, CreateDelegationTokenRequest())
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    times = (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms)
    assert times == (-1, -1, -1)


def test_a_denied_logger_is_answered_by_its_operations(secured: Harness) -> None:
    deny_all(secured)
    legacy = AlterConfigsRequest([alter_configs_request.AlterConfigsResource(BROKER_LOGGER, "1", [])])
    assert [one.error_code for one in secured.ask(ApiKey.ALTER_CONFIGS, 2, legacy).responses] == [
        ErrorCode.INVALID_REQUEST
    ]
    levels = IncrementalAlterConfigsRequest(
        [incremental_alter_configs_request.AlterConfigsResource(BROKER_LOGGER, "1", [])]
    )
    answer = secured.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, levels)
    assert [one.error_code for one in answer.responses] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


def test_an_unknown_type_refuses_the_description_before_denials(secured: Harness) -> None:
    deny_all(secured)
    request = DescribeConfigsRequest([DescribeConfigsResource(2, "a"), DescribeConfigsResource(99, "x")])
    answer = secured.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert [one.error_code for one in answer.results] == [ErrorCode.INVALID_REQUEST] * 2
    only = DescribeConfigsRequest([DescribeConfigsResource(2, "a")])
    denied = secured.ask(ApiKey.DESCRIBE_CONFIGS, 4, only)
    assert [one.error_code for one in denied.results] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def deny_all(harness: Harness) -> None:
    denying = StandardAuthorizer(AuthorizerSettings())
    denying.end_load()
    harness.node.boundary._authorizer = denying


def test_a_token_for_another_owner_requires_permission(secured: Harness) -> None:
    request = CreateDelegationTokenRequest("User", "carol")
    assert secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request).error_code == 0
    deny_all(secured)
    refused = secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request).error_code
    assert refused == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    oneself = CreateDelegationTokenRequest("User", "ANONYMOUS")
    assert secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, oneself).error_code == 0
    described = secured.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, DescribeDelegationTokenRequest(None))
    assert [token.principal_name for token in described.tokens] == ["ANONYMOUS"]


def test_the_active_controller_removes_expired_tokens(secured: Harness) -> None:
    request = CreateDelegationTokenRequest(None, None, [], 3_000)
    secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)
    secured.advance(3_600_000 - 10_000)
    assert len(secured.node.image.delegation_tokens) == 1
    secured.advance(20_000)
    assert not secured.node.image.delegation_tokens


def test_a_follower_refuses_quotas_with_the_entities_as_sent() -> None:
    entry = EntryData([EntityData("user", "a"), EntityData("user", "b")], [])
    refused: Any = refuse(
        ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]), ErrorCode.NOT_CONTROLLER, "text"
    )
    (refusal,) = refused.entries
    assert (refusal.error_code, [part.entity_name for part in refusal.entity]) == (41, ["a", "b"])


def test_a_client_beyond_its_mutation_quota_is_throttled(harness: Harness) -> None:
    harness.unfenced()
    entry = EntryData([EntityData("client-id", "test")], [OpData("controller_mutation_rate", 1.0, False)])
    harness.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]))
    topics = [CreatableTopic("a", 15, 1), CreatableTopic("b", 1, 1)]
    answer = harness.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 1_000))
    assert [topic.error_code for topic in answer.topics] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert answer.topics[1].error_message is None
    assert answer.throttle_time_ms == 4_000
    assert list(harness.muted.values()) == [4_000]
    old = harness.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("c", 1, 1)], 1_000))
    assert [topic.error_code for topic in old.topics] == [0]
    assert old.throttle_time_ms == 5_000
    harness.advance(5_000)
    again = harness.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("b", 1, 1)], 1_000))
    assert [(topic.name, topic.error_code) for topic in again.topics] == [("b", 0)]


def test_a_token_for_another_owner_requires_create_tokens_on_the_user__kip373(secured: Harness) -> None:
    denying = StandardAuthorizer(AuthorizerSettings())
    acl = AclState(
        AclResourceType.USER,
        "User:carol",
        AclPatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.CREATE_TOKENS,
        AclPermission.ALLOW,
    )
    denying.change((), [acl])
    denying.end_load()
    secured.node.boundary._authorizer = denying
    for owner, code in (("carol", 0), ("dave", ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)):
        request = CreateDelegationTokenRequest("User", owner)
        assert secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request).error_code == code


def test_a_login_request_outside_of_a_login_is_refused(harness: Harness) -> None:
    illegal = ErrorCode.ILLEGAL_SASL_STATE
    assert harness.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code == illegal
    answer = harness.ask(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(b"token"))
    assert answer.error_code == illegal
    assert answer.error_message == "SaslAuthenticate came outside an authentication."


def test_only_a_change_that_a_broker_forwards_cordons_its_directories__kip1066(harness: Harness) -> None:
    harness.unfenced(1)
    config = incremental_alter_configs_request.AlterableConfig("cordoned.log.dirs", 0, "/a")
    resource = incremental_alter_configs_request.AlterConfigsResource(4, "1", [config])
    request = IncrementalAlterConfigsRequest([resource])
    (refused,) = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    outer = harness.ask(ApiKey.ENVELOPE, 0, carried(request, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1))
    _, answer = parse_response(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, bytes(outer.response_data))
    assert [one.error_code for one in answer.responses] == [0]
