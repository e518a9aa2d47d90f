"""DescribeDelegationToken: the tokens that the sender may see, with their HMACs (KIP-48, KIP-373).

Any controller answers from its image. Facts: DelegationTokenManager of Apache Kafka 4.3.1, whose brokers
answer with it; its controllers advertise the API and answer UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.tokens.change import FIRST_VERSION_WITH_REQUESTER, may_renew
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kraftd.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kraftd.metadata.state import DelegationTokenState
from kraftd.wire.error_code import ErrorCode

TOKEN_US = 25  # with two questions to the authorizer


@Sliced
def describe_delegation_tokens(
    ctx: Context,
    request: DescribeDelegationTokenRequest,
    version: int,
    requester: str,
    may_describe: Callable[[str, str], bool],
) -> Slices[Decision[DescribeDelegationTokenResponse]]:
    """The tokens whose owner or renewer is among the request's owners; all tokens if those are null.

    The requester sees its own, and others if ``may_describe(token id, owner)``. An empty list of owners is
    answered with no token, as Kafka does. Error: DELEGATION_TOKEN_AUTH_DISABLED without a secret key.
    """
    if not ctx.token_secrets.enabled:
        return Decision(DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, []))
    answer = DescribeDelegationTokenResponse(ErrorCode.NONE, [])
    owners = None
    pace = Pace()
    if request.owners is not None:
        if not request.owners:
            return Decision(answer)
        owners = yield from count_in_slices(request.owners, _principal, pace)
    for token_id, token in ctx.image.delegation_tokens.items():
        if pace.spent(TOKEN_US):
            yield
        if owners is not None and not any(one in owners for one in (token.owner, *token.renewers)):
            continue
        if may_renew(token, requester) or may_describe(token_id, token.owner):
            answer.tokens.append(_described(ctx, version, token_id, token))
    if owners is not None:
        yield from owners.free(pace)
    return Decision(answer)


def _principal(owner: DescribeDelegationTokenOwner) -> str:
    return f"{owner.principal_type}:{owner.principal_name}"


def _described(
    ctx: Context, version: int, token_id: str, token: DelegationTokenState
) -> DescribedDelegationToken:
    requester = _parts(token.requester) if version >= FIRST_VERSION_WITH_REQUESTER else ("", "")
    renewers = [DescribedDelegationTokenRenewer(*_parts(renewer)) for renewer in token.renewers]
    return DescribedDelegationToken(
        *_parts(token.owner),
        *requester,
        token.issue_timestamp_ms,
        token.expiration_timestamp_ms,
        token.max_timestamp_ms,
        token_id,
        ctx.token_secrets.hmac(token_id),
        renewers,
    )


def _parts(principal: str) -> tuple[str, str]:
    """Type and name from a principal's text."""
    kind, _, name = principal.partition(":")
    return kind, name
