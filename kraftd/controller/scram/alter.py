"""AlterUserScramCredentials: a request changes a user once, completely or not at all (KIP-554).

Facts: ScramControlManager of Apache Kafka 4.3.1. Differs from it: an empty salted password is
UNACCEPTABLE_CREDENTIAL, where Kafka fails with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.record_limit import check_record_count
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftd.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_scram
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384
ALGORITHMS: Final = {1: "sha256", 2: "sha512"}  # by Kafka's numbers of mechanisms
USER_US: Final = 20

Change = ScramCredentialDeletion | ScramCredentialUpsertion
Problem = tuple[ErrorCode, str]

_TWICE: Final = (
    ErrorCode.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)


@Sliced
def alter_user_scram_credentials(
    ctx: Context, request: AlterUserScramCredentialsRequest, version: int
) -> Slices[Decision[AlterUserScramCredentialsResponse]]:
    """AlterUserScramCredentials (51), v0: set and delete SCRAM credentials of users (KIP-554).

    Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per user:
    DUPLICATE_RESOURCE, RESOURCE_NOT_FOUND, UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION (before metadata.version 3.5-IV2).
    Differs from Apache Kafka: an empty salted password is UNACCEPTABLE_CREDENTIAL, not UNKNOWN_SERVER_ERROR.

    The records of all changes in one batch, and per user the error if refused: DUPLICATE_RESOURCE,
    UNSUPPORTED_VERSION, UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND.

    Raises Refusal(POLICY_VIOLATION) for more than 10,000 changes.
    """
    image = ctx.image
    changes: dict[str, Change] = {}
    refused: list[AlterUserScramCredentialsResult] = []
    pace = Pace()
    requested: Sequence[Change] = request.deletions or request.upsertions
    if request.deletions and request.upsertions:
        requested = [*request.deletions, *request.upsertions]
    times = yield from count_in_slices(requested, attrgetter("name"), pace)
    for change in requested:
        if pace.spent(USER_US):
            yield
        name = change.name
        count = times.take(name)
        if not count:
            continue  # answered at its first place
        problem = _problem(image, change)
        if problem is None and count > 1:
            problem = _TWICE
        if problem is None:
            changes[name] = change
            check_record_count(len(changes))
        else:
            refused.append(AlterUserScramCredentialsResult(name, *problem))
    answer = AlterUserScramCredentialsResponse(results=[])
    records = []
    for name, change in changes.items():
        if pace.spent(USER_US):
            yield
        records.append(VersionedRecord(_record(change), 0))
        answer.results.append(AlterUserScramCredentialsResult(name, ErrorCode.NONE, None))
    answer.results += refused
    return Decision(answer, records)


def _problem(image: Image, change: Change) -> Problem | None:
    """The reason to refuse a change, in the order of Kafka's checks; None for a valid one."""
    if not allows_scram(image.metadata_version):
        return ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if change.mechanism not in ALGORITHMS:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(change, ScramCredentialDeletion):
        if (change.mechanism, change.name) not in image.scram:
            text = "Attempt to delete a user credential that does not exist"
            return ErrorCode.RESOURCE_NOT_FOUND, text
        return None
    if change.iterations < MIN_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if change.iterations > MAX_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    if not change.salted_password:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password must not be empty"
    return None


def _record(change: Change) -> RemoveUserScramCredentialRecord | UserScramCredentialRecord:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(change.name, change.mechanism)
    algorithm, salted = ALGORITHMS[change.mechanism], bytes(change.salted_password)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        change.name,
        change.mechanism,
        bytes(change.salt),
        hashlib.new(algorithm, client_key).digest(),
        hmac.digest(salted, b"Server Key", algorithm),
        change.iterations,
    )
