"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken, and the sweep of expired tokens.

Facts: DelegationTokenControlManager of Apache Kafka 4.3.1. Times are milliseconds since the epoch. The
requester is text, like ``User:alice``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.tokens.secrets import TokenSecrets
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kraftd.metadata.access_records import token_record
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_delegation_tokens
from kraftd.metadata.state import DelegationTokenState
from kraftd.types import ONE_UUID, ZERO_UUID, uuid_text
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

MAX_SWEPT_TOKENS: Final = 1_000  # per sweep; the next follows at once
MAX_TIMESTAMP_MS: Final = 2**63 - 1
USER: Final = "User"
FIRST_VERSION_WITH_REQUESTER = 3  # version of CreateDelegationToken and DescribeDelegationToken


def create_delegation_token(
    ctx: Context, request: CreateDelegationTokenRequest, version: int, requester: tuple[str, str]
) -> Decision[CreateDelegationTokenResponse]:
    """A new token with its HMAC; its owner is the requester (type and name) unless the request names one.

    Errors: DELEGATION_TOKEN_AUTH_DISABLED without a secret key, UNSUPPORTED_VERSION before metadata.version
    3.6-IV2, INVALID_PRINCIPAL_TYPE for a renewer that is no User, or an owner whose type is null.
    """
    owner = requester
    if request.owner_principal_name:
        owner = (request.owner_principal_type or "", request.owner_principal_name)
    recorded = requester if version >= FIRST_VERSION_WITH_REQUESTER else ("", "")
    answer = CreateDelegationTokenResponse(
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=recorded[0],
        token_requester_principal_name=recorded[1],
    )
    answer.error_code = _unavailable(ctx)
    if answer.error_code:
        return Decision(answer)
    without_type = request.owner_principal_name and request.owner_principal_type is None
    if without_type or any(renewer.principal_type != USER for renewer in request.renewers):
        answer.error_code = ErrorCode.INVALID_PRINCIPAL_TYPE
        return Decision(answer)
    settings = ctx.settings.tokens
    max_lifetime_ms = settings.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        max_lifetime_ms = min(max_lifetime_ms, request.max_lifetime_ms)
    wall_ms = ctx.wall_ms
    max_timestamp_ms = min(wall_ms + max_lifetime_ms, MAX_TIMESTAMP_MS)
    token = DelegationTokenState(
        ":".join(owner),
        ":".join(requester),
        tuple(f"{one.principal_type}:{one.principal_name}" for one in request.renewers),
        wall_ms,
        max_timestamp_ms,
        min(max_timestamp_ms, wall_ms + settings.expiry_time_ms),
    )
    answer.token_id = _new_token_id(ctx)
    answer.hmac = ctx.token_secrets.hmac(answer.token_id)
    answer.issue_timestamp_ms = wall_ms
    answer.expiry_timestamp_ms = token.expiration_timestamp_ms
    answer.max_timestamp_ms = max_timestamp_ms
    return Decision(answer, [token_record(answer.token_id, token)])


def renew_delegation_token(
    ctx: Context, request: RenewDelegationTokenRequest, version: int, requester: str
) -> Decision[RenewDelegationTokenResponse]:
    """Set a later expiry, never past the maximum lifetime.

    Errors: as creation, and DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_OWNER_MISMATCH for a requester that is neither owner nor renewer.
    """
    code, token_id, token = _found(ctx, request.hmac)
    if token is not None and is_expired(token, ctx.wall_ms):
        code = ErrorCode.DELEGATION_TOKEN_EXPIRED
    elif token is not None and not may_renew(token, requester):
        code = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    if code or token is None:
        return Decision(RenewDelegationTokenResponse(code))
    period_ms = ctx.settings.tokens.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    expires_ms = min(token.max_timestamp_ms, ctx.wall_ms + period_ms)
    answer = RenewDelegationTokenResponse(ErrorCode.NONE, expires_ms)
    return Decision(answer, [token_record(token_id, _expiring(token, expires_ms))])


def expire_delegation_token(
    ctx: Context, request: ExpireDelegationTokenRequest, version: int, requester: str
) -> Decision[ExpireDelegationTokenResponse]:
    """Set another expiry, possibly earlier; a negative period removes the token at once.

    Errors: as renewal.
    """
    code, token_id, token = _found(ctx, request.hmac)
    if token is not None and not may_renew(token, requester):
        code = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    if code or token is None:
        return Decision(ExpireDelegationTokenResponse(code))
    if request.expiry_time_period_ms < 0:
        answer = ExpireDelegationTokenResponse(ErrorCode.NONE, ctx.wall_ms)
        return Decision(answer, [VersionedRecord(RemoveDelegationTokenRecord(token_id), 0)])
    if is_expired(token, ctx.wall_ms):
        return Decision(ExpireDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    expires_ms = min(token.max_timestamp_ms, ctx.wall_ms + request.expiry_time_period_ms)
    answer = ExpireDelegationTokenResponse(ErrorCode.NONE, expires_ms)
    return Decision(answer, [token_record(token_id, _expiring(token, expires_ms))])


def sweep_expired_tokens(ctx: Context) -> Decision[bool]:
    """Remove expired tokens, up to 1,000; the answer is whether there may be more."""
    records = []
    for token_id, token in ctx.image.delegation_tokens.items():
        if is_expired(token, ctx.wall_ms):
            records.append(VersionedRecord(RemoveDelegationTokenRecord(token_id), 0))
            if len(records) == MAX_SWEPT_TOKENS:
                return Decision(True, records, atomic=False)
    return Decision(False, records, atomic=False)


def is_expired(token: DelegationTokenState, wall_ms: int) -> bool:
    return token.max_timestamp_ms < wall_ms or token.expiration_timestamp_ms < wall_ms


def may_renew(token: DelegationTokenState, requester: str) -> bool:
    """Return whether the requester is the owner or one of the renewers."""
    return requester == token.owner or requester in token.renewers


def _unavailable(ctx: Context) -> int:
    if not ctx.token_secrets.enabled:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if not allows_delegation_tokens(ctx.image.metadata_version):
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _found(ctx: Context, token_hmac: bytes) -> tuple[int, str, DelegationTokenState | None]:
    """An error code, or the token of an HMAC with its id."""
    code = _unavailable(ctx)
    if code:
        return code, "", None
    secrets: TokenSecrets = ctx.token_secrets
    token_id = secrets.find(ctx.image, bytes(token_hmac))
    if token_id is None:
        return ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "", None
    return ErrorCode.NONE, token_id, ctx.image.delegation_tokens[token_id]


def _expiring(token: DelegationTokenState, expires_ms: int) -> DelegationTokenState:
    return msgspec.structs.replace(token, expiration_timestamp_ms=expires_ms)


def _new_token_id(ctx: Context) -> str:
    """An unused token id of 22 characters that does not begin with a dash."""
    image: Image = ctx.image
    while True:
        raw = ctx.rng.uuid()
        text = uuid_text(raw)
        if raw not in (ZERO_UUID, ONE_UUID) and text[0] != "-" and text not in image.delegation_tokens:
            return text
