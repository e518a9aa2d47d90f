"""The credentials for SCRAM logins: the bootstrap's until the image is loaded, then only the image's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.state import DelegationTokenState, ScramState
from kraftd.replica.credentials import NodeCredentials
from kraftd.security.sasl.delegation_tokens import TokenCredentials
from kraftd.wire.record_frame import VersionedRecord

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
OF_BOOTSTRAP = ScramState(b"salt", b"stored", b"server", 4_096)
OF_IMAGE = ScramState(b"new salt", b"new stored", b"new server", 8_192)
BOOTSTRAP = [
    VersionedRecord(FeatureLevelRecord("metadata.version", 30), 0),
    VersionedRecord(UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4_096), 0),
]


def token(expires_ms: int) -> DelegationTokenState:
    return DelegationTokenState("User:alice", "User:alice", (), 0, 9_000, expires_ms)


def credentials(
    epoch: int = -1,
    secret_key: str = "secret",
    scram: Any = None,
    tokens: Any = None,
    loads_snapshot: bool = False,
) -> NodeCredentials:
    image = SimpleNamespace(scram=scram or {}, delegation_tokens=tokens or {})
    context: Any = SimpleNamespace(image=image)
    replay = SimpleNamespace(loads_snapshot=loads_snapshot)
    following: Any = SimpleNamespace(finalized_features=SimpleNamespace(epoch=epoch), replay=replay)
    return NodeCredentials(context, following, BOOTSTRAP, "cluster", secret_key, b"salt")


@pytest.mark.parametrize(
    ("mechanism", "name", "epoch", "scram", "found"),
    [
        (SHA_256, "alice", -1, {}, OF_BOOTSTRAP),
        (SHA_512, "alice", -1, {}, None),
        (SHA_256, "bob", -1, {}, None),
        (SHA_256, "alice", 0, {}, None),  # deleted since
        (SHA_256, "alice", 5, {}, None),
        (SHA_256, "alice", -1, {(1, "alice"): OF_IMAGE}, OF_IMAGE),
        (SHA_512, "bob", 5, {(2, "bob"): OF_IMAGE}, OF_IMAGE),
    ],
)
def test_users_of_the_bootstrap_can_log_in_until_the_image_is_loaded(
    mechanism: str, name: str, epoch: int, scram: Any, found: ScramState | None
) -> None:
    assert credentials(epoch, scram=scram).user(mechanism, name) == found


def test_a_user_or_token_is_gone_once_a_known_image_lacks_it() -> None:
    scram, tokens = {(1, "alice"): OF_IMAGE}, {"id": token(5_000)}
    for epoch, loads_snapshot, known in ((5, False, True), (-1, False, False), (5, True, False)):
        one = credentials(epoch, scram=scram, tokens=tokens, loads_snapshot=loads_snapshot)
        assert not one.user_is_gone(SHA_256, "alice")
        assert one.user_is_gone(SHA_512, "alice") == known
        assert not one.token_is_gone("id", 4_999)
        assert one.token_is_gone("id", 5_000) == one.token_is_gone("other", 0) == known


def test_decoys_look_like_the_credentials_of_their_mechanism() -> None:
    scram = {
        (2, "bob"): ScramState(b"0123456789abcdefghijklmnop", bytes(64), bytes(64), 9_000),
        (1, "alice"): ScramState(b"0123456789abcdefghijklmnop", bytes(32), bytes(32), 10_000),
    }
    one, other = credentials(5, scram=scram), credentials(5, scram=dict(reversed(scram.items())))
    for mechanism, iterations in ((SHA_256, 10_000), (SHA_512, 9_000)):
        decoy = one.decoy(mechanism, "mallory", by_token=False)
        assert decoy.iterations == iterations
        assert decoy == other.decoy(mechanism, "mallory", by_token=False)
    assert one.decoy(SHA_256, "unknown", by_token=True).salt == b"salt"  # all tokens have this salt
    assert credentials(5).decoy(SHA_256, "mallory", by_token=False).iterations == 4_096


@pytest.mark.parametrize(("now_ms", "valid"), [(0, True), (4_999, True), (5_000, False), (9_000, False)])
def test_a_token_is_a_credential_of_its_owner_until_it_expires__kip48(now_ms: int, valid: bool) -> None:
    tokens = {"id": token(5_000)}
    found = credentials(tokens=tokens).token(SHA_256, "id", now_ms)
    assert (found is not None) is valid
    if found is not None:
        expected = TokenCredentials(b"secret", b"salt").find(SHA_256, "id", tokens["id"])
        assert found.credential == expected.credential
        assert (found.owner, found.expires_ms) == ("alice", 5_000)
    assert credentials(tokens=tokens).token(SHA_256, "another", now_ms) is None
    assert credentials(secret_key="", tokens=tokens).token(SHA_256, "id", now_ms) is None
