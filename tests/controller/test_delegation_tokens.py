"""Lifetimes, renewal and expiry of delegation tokens (KIP-48)."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from kraftd.controller.context import TokenSettings
from kraftd.controller.decision import Decision
from kraftd.controller.tokens.change import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
    sweep_expired_tokens,
)
from kraftd.controller.tokens.describe import describe_delegation_tokens
from kraftd.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from kraftd.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.types import ONE_UUID, ZERO_UUID, uuid_text
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

DAY = 86_400_000
NOW = 1_000  # of the cluster's context


class Tokens:
    """A cluster with tokens, and the time."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = Cluster(tokens=TokenSettings(**{"secret_key": "secret", **settings}))
        self.ctx = self.cluster.ctx

    def take(self, decision: Decision[Any]) -> Any:
        self.cluster.apply(decision.records)
        return decision.answer

    def create(self, *renewers: str, life_ms: int = -1, owner: str = "", kind: str = "User") -> Any:
        named = [CreatableRenewers(kind, name) for name in renewers]
        request = CreateDelegationTokenRequest("User" if owner else None, owner or None, named, life_ms)
        return self.take(create_delegation_token(self.ctx, request, 3, ("User", "alice")))

    def renew(self, token_hmac: bytes, period_ms: int = -1, by: str = "User:alice") -> Any:
        request = RenewDelegationTokenRequest(token_hmac, period_ms)
        return self.take(renew_delegation_token(self.ctx, request, 2, by))

    def expire(self, token_hmac: bytes, period_ms: int = -1, by: str = "User:alice") -> Any:
        request = ExpireDelegationTokenRequest(token_hmac, period_ms)
        return self.take(expire_delegation_token(self.ctx, request, 2, by))

    def described(
        self, *owners: str, null: bool = False, by: str = "User:alice", sees_all: bool = False
    ) -> Any:
        named = None if null else [DescribeDelegationTokenOwner("User", owner) for owner in owners]
        request = DescribeDelegationTokenRequest(named)
        decision = describe_delegation_tokens(self.ctx, request, 3, by, lambda token_id, owner: sees_all)
        return decision.answer


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


def test_a_token_has_the_hmac_of_its_id_and_kafkas_times(tokens: Tokens) -> None:
    made = tokens.create("bob")
    assert made.error_code == 0
    assert made.hmac == hmac.new(b"secret", made.token_id.encode(), hashlib.sha512).digest()
    assert len(made.token_id) == 22
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms) == (NOW, NOW + DAY)
    assert made.max_timestamp_ms == NOW + 7 * DAY
    state = tokens.cluster.image.delegation_tokens[made.token_id]
    assert (state.owner, state.requester, state.renewers) == ("User:alice", "User:alice", ("User:bob",))


def test_a_requested_lifetime_can_only_shorten_a_tokens_life(tokens: Tokens) -> None:
    short = tokens.create(life_ms=3_000)
    assert short.expiry_timestamp_ms == short.max_timestamp_ms == NOW + 3_000
    assert tokens.create(life_ms=2**63 - 1).max_timestamp_ms == NOW + 7 * DAY


def test_a_token_for_another_owner_has_its_requester(tokens: Tokens) -> None:
    made = tokens.create(owner="carol")
    assert (made.principal_type, made.principal_name) == ("User", "carol")
    assert made.token_requester_principal_type == "User"
    assert made.token_requester_principal_name == "alice"
    assert tokens.cluster.image.delegation_tokens[made.token_id].owner == "User:carol"


def test_an_owner_may_have_an_empty_type(tokens: Tokens) -> None:
    request = CreateDelegationTokenRequest("", "bob")
    made = tokens.take(create_delegation_token(tokens.ctx, request, 3, ("User", "alice")))
    assert made.error_code == 0
    assert tokens.cluster.image.delegation_tokens[made.token_id].owner == ":bob"


def test_a_renewer_that_is_no_user_is_refused(tokens: Tokens) -> None:
    assert tokens.create("bob", kind="Group").error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    typeless = CreateDelegationTokenRequest(None, "bob")
    answer = tokens.take(create_delegation_token(tokens.ctx, typeless, 3, ("User", "alice")))
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not tokens.cluster.image.delegation_tokens


def test_a_renewal_never_exceeds_the_maximum_lifetime(tokens: Tokens) -> None:
    made = tokens.create("bob")
    tokens.ctx.now_ms = NOW + DAY // 2
    assert tokens.renew(made.hmac, 1_000, "User:bob").expiry_timestamp_ms == tokens.ctx.now_ms + 1_000
    assert tokens.renew(made.hmac).expiry_timestamp_ms == tokens.ctx.now_ms + DAY
    for _ in range(20):
        tokens.ctx.now_ms += DAY // 2
        last = tokens.renew(made.hmac)
        if last.error_code:
            break
        assert last.expiry_timestamp_ms <= made.max_timestamp_ms
    assert last.error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_a_tokens_life_follows_the_wall_clock(tokens: Tokens) -> None:
    tokens.ctx.wall_ahead_ms = DAY
    made = tokens.create("bob", life_ms=3_000)
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms) == (NOW + DAY, NOW + DAY + 3_000)
    assert tokens.renew(made.hmac).error_code == 0
    tokens.ctx.wall_ahead_ms = 2 * DAY
    assert tokens.renew(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert len(sweep_expired_tokens(tokens.ctx).records) == 1


def test_only_the_owner_and_renewers_change_a_token(tokens: Tokens) -> None:
    made = tokens.create("bob")
    for change in (tokens.renew, tokens.expire):
        assert change(made.hmac, by="User:eve").error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert change(bytes(64)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert change(b"").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert tokens.expire(made.hmac, by="User:bob").error_code == 0


def test_a_negative_period_ends_a_token_at_once_and_another_moves_its_end(tokens: Tokens) -> None:
    made = tokens.create()
    assert tokens.expire(made.hmac, 5_000).expiry_timestamp_ms == NOW + 5_000
    tokens.ctx.now_ms = NOW + 5_001
    assert tokens.expire(made.hmac, 5_000).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert tokens.expire(made.hmac, -1).error_code == 0
    assert not tokens.cluster.image.delegation_tokens
    assert tokens.expire(made.hmac, -1).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_the_sweep_removes_what_has_expired_a_thousand_at_a_time(tokens: Tokens) -> None:
    for _ in range(1_001):
        tokens.create(life_ms=10)
    kept = tokens.create()
    assert tokens.take(sweep_expired_tokens(tokens.ctx)) is False
    assert len(tokens.cluster.image.delegation_tokens) == 1_002
    tokens.ctx.now_ms = NOW + 11
    swept = sweep_expired_tokens(tokens.ctx)
    assert swept.atomic is False
    assert tokens.take(swept) is True
    assert tokens.take(sweep_expired_tokens(tokens.ctx)) is False
    assert list(tokens.cluster.image.delegation_tokens) == [kept.token_id]


def test_the_hmacs_of_removed_tokens_are_forgotten(tokens: Tokens) -> None:
    for _ in range(1_500):
        tokens.create(life_ms=10)
    made = tokens.create()
    assert tokens.renew(made.hmac).error_code == 0
    tokens.ctx.now_ms = NOW + 11
    while tokens.take(sweep_expired_tokens(tokens.ctx)):
        pass
    assert tokens.renew(made.hmac).error_code == 0
    assert tokens.renew(tokens.create().hmac).error_code == 0
    assert repr(tokens.ctx.token_secrets) == "<TokenSecrets enabled, 2 known>"


def test_tokens_are_shown_to_owners_renewers_and_principals_that_may_describe_them(tokens: Tokens) -> None:
    made = tokens.create("bob")
    other = tokens.create(owner="carol")
    (shown,) = tokens.described("bob", by="User:bob").tokens
    assert (shown.token_id, shown.hmac, shown.renewers[0].principal_name) == (made.token_id, made.hmac, "bob")
    assert tokens.described(null=True, by="User:eve").tokens == []
    assert len(tokens.described(null=True, by="User:eve", sees_all=True).tokens) == 2
    assert [one.token_id for one in tokens.described("carol", by="User:carol").tokens] == [other.token_id]
    assert tokens.described().tokens == []


def test_without_a_secret_key_there_are_no_tokens() -> None:
    tokens = Tokens(secret_key="")
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert tokens.create().error_code == disabled
    assert tokens.renew(bytes(64)).error_code == disabled
    assert tokens.expire(bytes(64)).error_code == disabled
    assert tokens.described(null=True).error_code == disabled


def test_before_metadata_version_3_6_there_are_no_tokens() -> None:
    tokens = Tokens()
    tokens.cluster = Cluster(metadata_version=12, tokens=TokenSettings(secret_key="secret"))
    tokens.ctx = tokens.cluster.ctx
    assert tokens.create().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert tokens.renew(bytes(64)).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_the_secret_key_is_in_no_repr(tokens: Tokens) -> None:
    assert "secret" not in repr(tokens.ctx.settings) + repr(tokens.ctx) + repr(tokens.ctx.settings.tokens)


@pytest.mark.parametrize("version", [2, 3])
def test_the_requester_of_a_token_is_in_answers_from_version_3_on__kip373(
    tokens: Tokens, version: int
) -> None:
    request = CreateDelegationTokenRequest("Robot", "r2:d2", [CreatableRenewers("User", "bob")], 0)
    made = tokens.take(create_delegation_token(tokens.ctx, request, version, ("User", "alice")))
    requester = ("User", "alice") if version == 3 else ("", "")
    assert (made.principal_type, made.principal_name) == ("Robot", "r2:d2")
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == requester
    described = DescribeDelegationTokenRequest(None)
    decision = describe_delegation_tokens(tokens.ctx, described, version, "User:bob", lambda *_: False)
    [shown] = decision.answer.tokens
    assert (shown.principal_type, shown.principal_name) == ("Robot", "r2:d2")
    assert (shown.token_requester_principal_type, shown.token_requester_principal_name) == requester
    assert (shown.issue_timestamp, shown.expiry_timestamp, shown.max_timestamp) == (
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )
    assert shown.hmac == made.hmac


@pytest.mark.parametrize(("asked_ms", "life_ms"), [(0, 7 * DAY), (-1, 7 * DAY), (1, 1), (2, 2)])
def test_a_positive_lifetime_is_used_as_requested(tokens: Tokens, asked_ms: int, life_ms: int) -> None:
    made = tokens.create(life_ms=asked_ms)
    assert made.max_timestamp_ms == NOW + life_ms


@pytest.mark.parametrize(("asked_ms", "period_ms"), [(0, DAY), (-1, DAY), (1, 1), (2, 2)])
def test_a_positive_renewal_period_is_used_as_requested(
    tokens: Tokens, asked_ms: int, period_ms: int
) -> None:
    made = tokens.create()
    renewed = tokens.renew(made.hmac, asked_ms)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, NOW + period_ms)
    state = tokens.cluster.image.delegation_tokens[made.token_id]
    assert state.expiration_timestamp_ms == NOW + period_ms


def test_a_negative_expiry_removes_a_token_at_once_and_zero_does_not(tokens: Tokens) -> None:
    made = tokens.create()
    answer = tokens.expire(made.hmac, 0)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, NOW)
    assert made.token_id in tokens.cluster.image.delegation_tokens
    answer = tokens.expire(made.hmac, -1)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, NOW)
    assert made.token_id not in tokens.cluster.image.delegation_tokens


@pytest.mark.parametrize("life_ms", [10, DAY])
def test_a_token_is_valid_to_the_last_millisecond_of_its_life_or_period(life_ms: int) -> None:
    tokens = Tokens(expiry_time_ms=10)
    made = tokens.create(life_ms=life_ms)
    tokens.ctx.now_ms = NOW + 10
    last = sweep_expired_tokens(tokens.ctx)
    assert (last.answer, last.records, last.atomic) == (False, [], False)
    assert tokens.expire(made.hmac, 0).error_code == 0
    tokens.ctx.now_ms = NOW + 11
    assert len(sweep_expired_tokens(tokens.ctx).records) == 1
    assert tokens.renew(made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


class FixedRandomness:
    """Draws of these token ids in order."""

    def __init__(self, *raw: bytes) -> None:
        self.raw = list(raw)

    def below(self, n: int) -> int:
        return 0

    def uuid(self) -> bytes:
        return self.raw.pop(0)


def test_a_token_id_is_new_not_reserved_and_does_not_look_like_an_option() -> None:
    known, good = b"\1" * 16, b"\3\xef" + bytes(14)  # a dash, but not at the beginning
    raw = (known, ZERO_UUID, ONE_UUID, b"\xf8" + bytes(15), known, good)
    cluster = Cluster(tokens=TokenSettings(secret_key="secret"), rng=FixedRandomness(*raw))
    made = []
    for _ in range(2):
        request = CreateDelegationTokenRequest(None, None, [], -1)
        decision = create_delegation_token(cluster.ctx, request, 3, ("User", "alice"))
        cluster.apply(decision.records)
        made.append(decision.answer.token_id)
    assert made == [uuid_text(known), uuid_text(good)]
    assert made[1][1] == "-"
