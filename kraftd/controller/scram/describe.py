"""DescribeUserScramCredentials: the mechanisms of users, never their keys (KIP-554).

Any controller answers from its image. Facts: ScramImage of Apache Kafka 4.3.1, whose brokers answer with it;
its controllers advertise the API and answer UNKNOWN_SERVER_ERROR, or not at all for null users.
"""

from __future__ import annotations

from collections.abc import Collection

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import cut
from kraftd.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraftd.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kraftd.wire.error_code import ErrorCode

USER_US = 3


@Sliced
def describe_user_scram_credentials(
    ctx: Context, request: DescribeUserScramCredentialsRequest, version: int
) -> Slices[Decision[DescribeUserScramCredentialsResponse]]:
    """The named users, or all if none is named; per user RESOURCE_NOT_FOUND or DUPLICATE_RESOURCE."""
    by_user: dict[str, list[CredentialInfo]] = {}
    pace = Pace()
    for (mechanism, user), credential in ctx.image.scram.items():
        if pace.spent(1):
            yield
        by_user.setdefault(user, []).append(CredentialInfo(mechanism, credential.iterations))
    requested: Collection[str] = by_user
    if request.users:
        requested = yield from _names(request.users, pace)
    times = yield from count_in_slices(requested, str, pace)
    results = []
    for user in requested:
        if pace.spent(USER_US):
            yield
        count = times.take(user)
        if not count:
            continue  # answered at its first place
        result = DescribeUserScramCredentialsResult(user)
        if count > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = cut(
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            )
        elif user not in by_user:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = cut(f"Attempt to describe a user credential that does not exist: {user}")
        else:
            result.credential_infos = by_user[user]
        results.append(result)
    return Decision(DescribeUserScramCredentialsResponse(results=results))


def _names(users: list[UserName], pace: Pace) -> Slices[list[str]]:
    names = []
    for user in users:
        if pace.spent(1):
            yield
        names.append(user.name)
    return names
