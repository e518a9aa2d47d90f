"""SCRAM credentials are set, shown without their keys, and deleted (KIP-554)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from msgspec import structs

from kraftd.controller.scram.alter import alter_user_scram_credentials
from kraftd.controller.scram.describe import describe_user_scram_credentials
from kraftd.ground.refusal import Refusal
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftd.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

SHA_256, SHA_512 = 1, 2


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    return ScramCredentialUpsertion(
        name, mechanism, iterations, base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), salted
    )


def alter(
    cluster: Cluster,
    *upsertions: ScramCredentialUpsertion,
    deleted: tuple[tuple[str, int], ...] = (),
) -> dict[str, ErrorCode]:
    deletions = [ScramCredentialDeletion(*one) for one in deleted]
    request = AlterUserScramCredentialsRequest(deletions, list(upsertions))
    results = cluster.decide(alter_user_scram_credentials, request, 0).results
    assert len({result.user for result in results}) == len(results)
    return {result.user: ErrorCode(result.error_code) for result in results}


def describe(cluster: Cluster, *users: str, null: bool = False) -> dict[str, Any]:
    named = None if null else [UserName(user) for user in users]
    answer = cluster.decide(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(named), 0)
    assert answer.error_code == 0
    return {
        result.user: ErrorCode(result.error_code)
        if result.error_code
        else sorted((info.mechanism, info.iterations) for info in result.credential_infos)
        for result in answer.results
    }


def test_the_keys_are_those_of_rfc_7677s_example() -> None:
    cluster = Cluster()
    assert alter(cluster, upsertion("user")) == {"user": ErrorCode.NONE}
    stored = cluster.image.scram[SHA_256, "user"]
    assert base64.b64encode(stored.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(stored.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_users_are_described_by_name_and_all_for_an_empty_or_null_list() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("a"), upsertion("b", SHA_512, 8192))
    alter(cluster, upsertion("a", SHA_512))
    everyone = {"a": [(SHA_256, 4096), (SHA_512, 4096)], "b": [(SHA_512, 8192)]}
    assert describe(cluster) == describe(cluster, null=True) == everyone
    assert describe(cluster, "b") == {"b": [(SHA_512, 8192)]}
    assert describe(cluster, "b", "b", "c") == {
        "b": ErrorCode.DUPLICATE_RESOURCE,
        "c": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert describe(cluster, "x" * 32_000)["x" * 32_000] == ErrorCode.RESOURCE_NOT_FOUND


def test_a_credential_can_be_deleted_once() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("a"), upsertion("b"))
    assert alter(cluster, deleted=(("a", SHA_256),)) == {"a": ErrorCode.NONE}
    assert set(cluster.image.scram) == {(SHA_256, "b")}
    assert alter(cluster, deleted=(("a", SHA_256),)) == {"a": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(cluster, deleted=(("b", SHA_512),)) == {"b": ErrorCode.RESOURCE_NOT_FOUND}


def test_a_user_named_twice_is_not_changed_at_all() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("a"))
    twice = alter(cluster, upsertion("a", SHA_512), upsertion("b"), upsertion("b"), deleted=(("a", SHA_256),))
    assert twice == {"a": ErrorCode.DUPLICATE_RESOURCE, "b": ErrorCode.DUPLICATE_RESOURCE}
    assert set(cluster.image.scram) == {(SHA_256, "a")}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("w", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("w", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("w", SHA_256, 4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("w", SHA_512, 16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialUpsertion("w", SHA_256, 4096, b"", b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_an_invalid_credential_is_refused_for_its_user(
    wrong: ScramCredentialUpsertion, code: ErrorCode
) -> None:
    cluster = Cluster()
    assert alter(cluster, wrong, upsertion("good")) == {wrong.name: code, "good": ErrorCode.NONE}
    assert set(cluster.image.scram) == {(SHA_256, "good")}


def test_before_metadata_version_3_5_credentials_are_refused() -> None:
    cluster = Cluster(metadata_version=10)
    assert alter(cluster, upsertion("a"), deleted=(("b", SHA_256),)) == {
        "a": ErrorCode.UNSUPPORTED_VERSION,
        "b": ErrorCode.UNSUPPORTED_VERSION,
    }


def test_more_than_10000_users_at_once_are_refused_and_none_is_changed() -> None:
    cluster, one = Cluster(), upsertion("")
    many = [structs.replace(one, name=f"user-{number}") for number in range(10_001)]
    with pytest.raises(Refusal) as refused:
        alter(cluster, *many)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert not cluster.image.scram
    assert set(alter(cluster, *many[1:]).values()) == {ErrorCode.NONE}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (upsertion(""), "Username must not be empty"),
        (upsertion("w", 3), "Unknown SCRAM mechanism"),
        (upsertion("w", SHA_256, 4_095), "Too few iterations"),
        (upsertion("w", SHA_256, 4_096), None),
        (upsertion("w", SHA_256, 16_384), None),
        (upsertion("w", SHA_256, 16_385), "Too many iterations"),
        (ScramCredentialUpsertion("w", SHA_256, 4096, b"", b""), "The salted password must not be empty"),
        (
            ScramCredentialDeletion("w", SHA_256),
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_a_refused_credential_has_the_reason(
    change: ScramCredentialUpsertion | ScramCredentialDeletion, text: str | None
) -> None:
    deleted = [change] if isinstance(change, ScramCredentialDeletion) else []
    set_ = [change] if isinstance(change, ScramCredentialUpsertion) else []
    request = AlterUserScramCredentialsRequest(deleted, set_)
    [result] = Cluster().decide(alter_user_scram_credentials, request, 0).results
    assert result.error_message == text
    [result] = Cluster(metadata_version=10).decide(alter_user_scram_credentials, request, 0).results
    assert result.error_message == "The current metadata.version does not support SCRAM"


def test_a_user_named_twice_is_refused_with_the_reason() -> None:
    request = AlterUserScramCredentialsRequest([], [upsertion("a")] * 2)
    [result] = Cluster().decide(alter_user_scram_credentials, request, 0).results
    assert result.error_message == "A user credential cannot be altered twice in the same request"
