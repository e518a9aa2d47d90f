"""The part of each API's file beside its decision: permitted principals, active or standby, and versions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller_node.apis.api_57_update_features import VOTERS_UNKNOWN
from kraftd.controller_node.apis.mutation_quota import charge_of
from kraftd.controller_node.apis.token_requests import PLAINTEXT, SSL, may_change_tokens
from kraftd.ground.event import DeadlineReached
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest
from kraftd.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.state import AclState
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.requests.call import Call
from kraftd.requests.events import ConnectionClosed
from kraftd.security.authorizer import AuthorizerSettings, StandardAuthorizer
from kraftd.security.principals import ANONYMOUS, Principal
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

ALICE, BY_TOKEN = Principal("User", "alice"), Principal("User", "alice", True)
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


@pytest.mark.parametrize(
    ("principal", "protocol", "forwarded", "allowed"),
    [
        (ALICE, 2, False, True),
        (ALICE, SSL, False, True),
        (ANONYMOUS, SSL, False, False),
        (ANONYMOUS, 2, False, True),
        (ALICE, PLAINTEXT, False, False),
        (ALICE, PLAINTEXT, True, True),  # the broker has checked its own listener
        (BY_TOKEN, 2, False, False),
        (BY_TOKEN, 2, True, False),
    ],
)
def test_only_authenticated_senders_may_request_tokens__kip48(
    principal: Principal, protocol: int, forwarded: bool, allowed: bool
) -> None:
    listeners: list[str] = []
    identity = SimpleNamespace(security_protocol=lambda name: listeners.append(name) or protocol)
    node: Any = SimpleNamespace(identity=identity)
    envelope = Call(1, 0, "C", "h", ApiKey.ENVELOPE, 0, 1, "c", None) if forwarded else None
    call = Call(1, 0, "C", "h", 38, 3, 1, "c", None, principal, envelope)
    assert may_change_tokens(node, call) is allowed
    assert set(listeners) <= {"C"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_denied_tokens_have_their_principals_and_no_times__kip373(harness: Harness, version: int) -> None:
    request = CreateDelegationTokenRequest("User" if version > 2 else "", "bob" if version > 2 else "")
    made = harness.ask(ApiKey.CREATE_DELEGATION_TOKEN, version, request)
    assert made.error_code == NOT_ALLOWED
    owner = ("User", "bob" if version > 2 else "ANONYMOUS")
    assert (made.principal_type, made.principal_name) == owner
    requester = ("User", "ANONYMOUS") if version > 2 else ("", "")
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == requester
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (-1, -1, -1)
    for key, change in (
        (ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest()),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenRequest()),
    ):
        refused = harness.ask(key, 2, change)
        assert (refused.error_code, refused.expiry_timestamp_ms) == (NOT_ALLOWED, -1)


@pytest.mark.parametrize(
    ("file", "message", "key"),
    [
        ("api_50_describe_user_scram_credentials", DescribeUserScramCredentialsRequest(), 50),
        ("api_29_describe_acls", DescribeAclsRequest(), 29),
        ("api_32_describe_configs", DescribeConfigsRequest(), 32),
        ("api_41_describe_delegation_token", DescribeDelegationTokenRequest(), 41),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_controller_describes_its_image_once_it_is_loaded(
    file: str, message: Any, key: int, known: bool
) -> None:
    decided: list[tuple[Any, Any, bool]] = []
    calls: list[Any] = []
    node: Any = SimpleNamespace(
        boundary=SimpleNamespace(has_authorizer=True, allows=None),
        identity=SimpleNamespace(security_protocol=lambda _: 2),
        following=SimpleNamespace(knows_metadata=lambda call: calls.append(call) or known),
        decisions=SimpleNamespace(
            decide=lambda call, decide, on_standby=False, refused=None: decided.append(
                (call, decide, on_standby)
            )
        ),
    )
    call = Call(1, 0, "C", "h", key, 0, 1, "c", message)
    list(import_module(f"kraftd.controller_node.apis.{file}").handle(node, call) or ())
    assert calls == [call]
    assert [(one, callable(decide), standby) for one, decide, standby in decided] == (
        [(call, True, True)] if known else []
    )


def test_without_an_authorizer_descriptions_of_acls_are_refused_in_kafkas_words() -> None:
    node: Any = SimpleNamespace(boundary=SimpleNamespace(has_authorizer=False))
    call = Call(1, 0, "C", "h", ApiKey.DESCRIBE_ACLS, 3, 1, "c", DescribeAclsRequest())
    with pytest.raises(Refusal) as refusal:
        import_module("kraftd.controller_node.apis.api_29_describe_acls").handle(node, call)
    assert refusal.value.code == ErrorCode.SECURITY_DISABLED
    assert refusal.value.message == "No Authorizer is configured on the broker"


@pytest.mark.parametrize(
    ("version", "code"), [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.MISMATCHED_ENDPOINT_TYPE)]
)
def test_describing_brokers_is_refused_with_the_versions_code__kip919(
    harness: Harness, version: int, code: ErrorCode
) -> None:
    answer = harness.ask(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest(endpoint_type=1))
    assert answer.error_code == code


@pytest.mark.parametrize(("version", "results"), [(1, 1), (2, 0)])
def test_updated_features_are_listed_one_by_one_before_v2__kip584(
    harness: Harness, version: int, results: int
) -> None:
    request = UpdateFeaturesRequest(1_000, [FeatureUpdateKey("group.version", 0, upgrade_type=2)])
    answer = harness.ask(ApiKey.UPDATE_FEATURES, version, request)
    assert (answer.error_code, len(answer.results)) == (0, results)


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_disabled_deletion_is_refused_with_the_versions_code(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    harness = Harness(tmp_path, delete__topic__enable="false").start()
    answer = harness.ask(ApiKey.DELETE_TOPICS, version, DeleteTopicsRequest(topic_names=("a",)))
    assert [one.error_code for one in answer.responses] == [code]


@pytest.mark.parametrize("unstable", [True, False])
def test_levels_that_are_not_released_are_listed_if_they_may_be_set(tmp_path: Path, unstable: bool) -> None:
    harness = Harness(tmp_path, unstable__feature__versions__enable=str(unstable).lower()).start()
    listed = {
        one.name: (one.min_version, one.max_version) for one in harness.api_versions().supported_features
    }
    assert listed == supported_features(unstable=unstable)


TOPIC, LOGGER = 2, 8


def test_denied_configs_are_refused_behind_the_others(harness: Harness) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.change([], [AclState(2, "b", 3, "User:ANONYMOUS", "*", 11, 3)])  # ALTER_CONFIGS on b
    authorizer.end_load()
    harness.unfenced()
    harness.create("a", "b")
    harness.node.boundary._authorizer = authorizer
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows: list[Any] = [legacy.AlterConfigsResource(TOPIC, name) for name in "ab"]
    answer = harness.ask(ApiKey.ALTER_CONFIGS, 2, legacy.AlterConfigsRequest(rows))
    assert [(one.resource_name, one.error_code) for one in answer.responses] == [("b", 0), ("a", denied)]
    assert answer.responses[1].error_message == denied.message
    assert answer.responses[1].resource_type == TOPIC
    rows = [incremental.AlterConfigsResource(kind, name) for kind, name in ((LOGGER, "100"), (TOPIC, "b"))]
    answer = harness.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, incremental.IncrementalAlterConfigsRequest(rows)
    )
    assert [(one.resource_name, one.error_code) for one in answer.responses] == [
        ("b", 0),
        ("100", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ]


def test_errors_of_the_core_are_counted_by_their_api(harness: Harness) -> None:
    request = DescribeQuorumRequest([TopicData("unknown", [PartitionData(0)])])
    assert harness.ask(ApiKey.DESCRIBE_QUORUM, 2, request).topics[0].partitions[0].error_code == 3
    assert harness.node.boundary.stats.by_key[ApiKey.DESCRIBE_QUORUM].errors == {3: 1}


def test_all_parked_fetches_of_one_connection_are_answered(harness: Harness) -> None:
    harness.register(1)
    end, high_watermark = harness.storage.log.log_end, harness.node.core.high_watermark
    places = [harness.fetch(end, high_watermark, connection_id=9) for _ in range(3)]
    assert len(harness.node.core_answers.waiting[9]) == 3
    harness.register(2)
    assert all(harness.answer(place) is not None for place in places)
    assert not harness.node.core_answers.waiting[9]


def test_a_lost_leadership_is_logged_with_the_undone_records(harness: Harness) -> None:
    lines: list[Any] = []
    for event in (raft_events.ResignRequested(harness.node.core.epoch), DeadlineReached()):
        lines += harness.node.step(event, harness.clock.ms)
    by_text = {one.text: (one.level, one.fields) for one in lines if hasattr(one, "text")}
    level, fields = by_text["no longer the active controller"]
    committed = harness.node.core.high_watermark
    assert level == "warning" and fields["undone_to"] == committed - 1
    assert fields["new_epoch"] >= fields["epoch"] > 0
    assert by_text["no leader"][0] == "info" and by_text["no leader"][1]["leader"] == "nobody"
    assert harness.node.leadership.leaders_seen == 1


def test_describe_cluster_names_the_current_leader(harness: Harness) -> None:
    request = DescribeClusterRequest(endpoint_type=2)
    harness.node.leadership.last_leader_id = 7
    assert harness.ask(ApiKey.DESCRIBE_CLUSTER, 2, request).controller_id == 100


def test_a_denied_deletion_is_answered_with_one_result(harness: Harness) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.end_load()
    harness.unfenced()
    harness.create("a")
    harness.node.boundary._authorizer = authorizer
    harness.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=("a",), timeout_ms=1_000))
    denied = [one.fields["operation"] for one in harness.audited if one.event == "authorization denied"]
    assert denied == ["DELETE"]


def test_calls_of_a_lost_connection_no_longer_wait_for_the_metadata(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    places = [
        harness.send(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2), connection_id)
        for connection_id in (1, 2)
    ]
    harness.step(ConnectionClosed(1))
    harness.start()
    assert [harness.answer(place) is None for place in places] == [True, False]


def test_decisions_know_the_next_offset_and_the_quorums_level(harness: Harness) -> None:
    context, finalized = harness.node.context, harness.node.following.finalized_features
    context.kraft_version = finalized.kraft_version = 0  # before an upgrade
    harness.node.core_answers._driver.perform([raft_effects.VotersChanged()])
    assert context.kraft_version == finalized.kraft_version == 1
    harness.create("a")
    offsets: list[int] = []

    def decide(ctx: Any) -> Any:
        offsets.append(ctx.next_offset)
        return SimpleNamespace(records=[], after=offsets.append)

    harness.node.decisions.decide_alone(decide)
    assert offsets == [harness.storage.log.log_end] * 2


def test_an_owner_without_a_type_is_answered_with_an_empty_one__kip373(harness: Harness) -> None:
    request = CreateDelegationTokenRequest(None, "bob")
    made = harness.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)
    assert (made.error_code, made.principal_type, made.principal_name) == (NOT_ALLOWED, "", "bob")


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("error", [None, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_UPDATE_VERSION])
def test_the_quorum_decides_on_another_kraft_version__kip853(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, validate_only: bool, error: ErrorCode | None
) -> None:
    calls: list[Any] = []

    def upgrade(*arguments: Any) -> ErrorCode | None:
        calls.append(arguments)
        return error

    monkeypatch.setattr(harness.node.decisions.appends, "upgrade_kraft_version", upgrade)
    harness.node.context.kraft_version = 0
    update = FeatureUpdateKey("kraft.version", 1, upgrade_type=1)
    request = UpdateFeaturesRequest(1_000, [update], validate_only)
    answer = harness.ask(ApiKey.UPDATE_FEATURES, 2, request)
    assert calls == [(1, validate_only)]
    assert answer.error_code == (error or ErrorCode.NONE)
    reasons = {ErrorCode.INVALID_UPDATE_VERSION: VOTERS_UNKNOWN}
    assert (answer.error_message or "").endswith(reasons.get(error, error.message) if error else "")
    assert bool(answer.error_message) is (error is not None)


def guarded(harness: Harness, *acls: AclState) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.change([], acls)
    authorizer.end_load()
    harness.node.boundary._authorizer = authorizer


def test_a_permission_on_the_cluster_deletes_topics(harness: Harness) -> None:
    harness.unfenced()
    harness.create("a")
    guarded(harness, AclState(4, "kafka-cluster", 3, "User:ANONYMOUS", "*", 6, 3))  # DELETE
    request = DeleteTopicsRequest(topic_names=("a",), timeout_ms=1_000)
    assert harness.ask(ApiKey.DELETE_TOPICS, 5, request).responses[0].error_code == 0


def test_hidden_configs_of_created_topics_are_not_audited_as_denied(harness: Harness) -> None:
    harness.unfenced()
    guarded(harness, AclState(TOPIC, "a", 3, "User:ANONYMOUS", "*", 5, 3))  # CREATE
    harness.create("a", "b")
    denied = [
        (one.fields["operation"], one.fields["resource"])
        for one in harness.audited
        if one.event == "authorization denied"
    ]
    assert len(denied) == 1 and denied[0][0] == "CREATE"


def test_a_cluster_that_may_not_be_described_is_denied_in_words(harness: Harness) -> None:
    guarded(harness)
    answer = harness.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (answer.error_code, answer.error_message) == (denied, denied.message)


@pytest.mark.parametrize(
    ("token", "owner", "checked", "shown"),
    [
        (True, False, [(6, 6, "id")], True),
        (False, True, [(6, 6, "id"), (8, 7, "User:bob")], True),
        (False, False, [(6, 6, "id"), (8, 7, "User:bob")], False),
    ],
)
def test_tokens_of_others_need_a_permission_on_the_token_or_its_owner__kip373(
    monkeypatch: pytest.MonkeyPatch, token: bool, owner: bool, checked: list[Any], shown: bool
) -> None:
    module = import_module("kraftd.controller_node.apis.api_41_describe_delegation_token")
    checks: list[Any] = []

    def allows(_: Any, operation: int, type: int, name: str) -> bool:
        checks.append((type, operation, name))
        return token if name == "id" else owner

    made: list[Any] = []
    node: Any = SimpleNamespace(
        boundary=SimpleNamespace(allows=allows),
        identity=SimpleNamespace(security_protocol=lambda _: 2),
        following=SimpleNamespace(knows_metadata=lambda _: True),
        decisions=SimpleNamespace(decide=lambda _, decide, on_standby: made.append(decide)),
    )
    monkeypatch.setattr(module.describe_delegation_tokens, "begin", lambda *arguments: arguments)
    call = Call(1, 0, "C", "h", 41, 3, 1, "c", DescribeDelegationTokenRequest(), ALICE)
    module.handle(node, call)
    context, request, version, requester, may_describe = made[0]("ctx", call.message, 3)
    assert (context, request, version, requester) == ("ctx", call.message, 3, "User:alice")
    assert may_describe("id", "User:bob") is shown
    assert [(operation, type, name) for type, operation, name in checks] == [
        (AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, "id"),
        (AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, "User:bob"),
    ][: len(checked)]


@pytest.mark.parametrize(
    ("key", "version", "strict"),
    [(19, 5, False), (19, 6, True), (20, 4, False), (20, 5, True), (37, 2, False), (37, 3, True)],
)
def test_clients_that_know_the_error_are_refused_above_their_quota__kip599(
    key: int, version: int, strict: bool
) -> None:
    charged: list[Any] = []

    def charge(*arguments: Any, strict: bool, on_throttle: Callable[[int], None]) -> None:
        charged.append((*arguments, strict))
        on_throttle(40)

    ctx: Any = SimpleNamespace(
        image=SimpleNamespace(quotas="quotas"),
        now_ms=7,
        mutations=SimpleNamespace(charge=charge),
    )
    call = Call(1, 0, "C", "h", key, version, 1, "c", None, ALICE)
    charge_of(ctx, call)
    assert charged == [("quotas", "alice", "c", 7, strict)]
    assert call.mute_ms == 40


def test_a_described_cluster_lists_the_operations_if_it_is_asked_to__kip430(harness: Harness) -> None:
    for included, bits in ((False, -(1 << 31)), (True, 0b1111110100000)):
        request = DescribeClusterRequest(included, endpoint_type=2)
        assert harness.ask(ApiKey.DESCRIBE_CLUSTER, 2, request).cluster_authorized_operations == bits


def test_a_permission_to_create_on_the_cluster_creates_topics(harness: Harness) -> None:
    harness.unfenced()
    guarded(harness, AclState(4, "kafka-cluster", 3, "User:ANONYMOUS", "*", 5, 3))  # CREATE
    answer = harness.answer(harness.create("a"))
    assert [one.error_code for one in answer.topics] == [0]
