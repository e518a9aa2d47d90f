"""SASL mechanisms and their sessions, both sides of each."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.metadata.state import DelegationTokenState, ScramState
from kraftd.security.principals import Principal
from kraftd.security.sasl.decoys import decoy_credential
from kraftd.security.sasl.delegation_tokens import TokenCredentials, token_hmac
from kraftd.security.sasl.mechanism import ClientExchange, SaslFailed, ServerExchange
from kraftd.security.sasl.plain import PlainClient, PlainServer, plain_users
from kraftd.security.sasl.scram import ScramServer, TokenCredential, credential_of
from kraftd.security.sasl.scram_client import ScramClient
from kraftd.security.sasl.session import (
    IllegalSaslStep,
    SaslRules,
    SaslSession,
    SaslState,
    UnsupportedMechanism,
)

NOW_MS = 1_000_000
SCRAM = "SCRAM-SHA-512"
ALICE = credential_of(SCRAM, "secret", b"salt", 4096)


class Users:
    """SCRAM's alice, and one of her delegation tokens."""

    def __init__(self, credential: ScramState = ALICE) -> None:
        self.credential = credential
        self.tokens = TokenCredentials(b"master", b"salt")
        self.state = DelegationTokenState("User:alice", "User:alice", (), 0, 0, NOW_MS + 500)

    def user(self, mechanism: str, name: str) -> ScramState | None:
        return self.credential if name in ("alice", "a=b,c") else None

    def token(self, mechanism: str, token_id: str, now_ms: int) -> TokenCredential | None:
        return self.tokens.find(mechanism, token_id, self.state) if token_id == "token" else None

    def user_is_gone(self, mechanism: str, name: str) -> bool:
        return self.user(mechanism, name) is None

    def token_is_gone(self, token_id: str, now_ms: int) -> bool:
        return now_ms >= self.state.expiration_timestamp_ms

    def decoy(self, mechanism: str, name: str, *, by_token: bool) -> ScramState:
        return decoy_credential(b"cluster", mechanism, name, self.credential)


def scram_server(nonce: str = "server") -> ScramServer:
    return ScramServer(SCRAM, Users(), nonce)


def login(server: ServerExchange, client: ClientExchange) -> None:
    """Exchange messages until the client has finished."""
    message: bytes | None = client.first(NOW_MS)
    while message is not None:
        message = client.respond(server.respond(message, NOW_MS), NOW_MS)
    assert client.complete


@pytest.mark.parametrize("name", ["alice", "a=b,c"])
def test_scram_authenticates_both_sides(name: str) -> None:
    server = scram_server()
    login(server, ScramClient(SCRAM, name, "secret", "client"))
    assert server.login is not None
    assert server.login.name == name


@pytest.mark.parametrize("by_token", [False, True])
def test_a_scram_login_is_revoked_with_its_user_or_token(by_token: bool) -> None:
    users = Users()
    server, client = ScramServer(SCRAM, users, "server"), ScramClient(SCRAM, "alice", "secret", "client")
    if by_token:
        password = base64.b64encode(token_hmac(b"master", "token")).decode()
        client = ScramClient(SCRAM, "token", password, "client", {"tokenauth": "true"})
    login(server, client)
    assert server.login is not None and server.login.is_revoked is not None
    is_revoked = server.login.is_revoked
    assert not is_revoked(NOW_MS)
    if by_token:
        assert is_revoked(users.state.expiration_timestamp_ms)
    else:
        users.user = lambda *_: None  # type: ignore[method-assign]
        assert is_revoked(NOW_MS)


def test_scram_with_a_wrong_password_fails_at_its_second_step() -> None:
    server, client = scram_server(), ScramClient(SCRAM, "alice", "wrong", "client")
    proof = client.respond(server.respond(client.first(NOW_MS), NOW_MS), NOW_MS)
    assert proof is not None
    with pytest.raises(SaslFailed) as failed:
        server.respond(proof, NOW_MS)
    assert failed.value.to_client is None
    assert server.login is None


@pytest.mark.parametrize("name", ["alice", "mallory"])
def test_a_login_of_an_unknown_user_proceeds_like_one_by_a_wrong_password(name: str) -> None:
    challenges = []
    for nonce in ("one", "two"):
        server, client = scram_server(nonce), ScramClient(SCRAM, name, "wrong", "client")
        challenge = server.respond(client.first(NOW_MS), NOW_MS)
        proof = client.respond(challenge, NOW_MS)
        assert proof is not None
        with pytest.raises(SaslFailed) as failed:
            server.respond(proof, NOW_MS)
        assert failed.value.to_client is None
        challenges.append(challenge.decode().split(",", 1)[1])
    assert challenges[0] == challenges[1] and challenges[0].endswith(",i=4096")


def test_no_proof_logs_in_an_unknown_user() -> None:
    password = "guessed"
    users = Users()
    users.decoy = lambda *_, **__: credential_of(SCRAM, password, b"salt", 4096)  # type: ignore[method-assign]
    server, client = ScramServer(SCRAM, users, "server"), ScramClient(SCRAM, "mallory", password, "client")
    proof = client.respond(server.respond(client.first(NOW_MS), NOW_MS), NOW_MS)
    assert proof is not None
    with pytest.raises(SaslFailed, match="'mallory'"):
        server.respond(proof, NOW_MS)
    assert server.login is None


@pytest.mark.parametrize("salt", [b"1k9vd1n6rqeg4s0kjvpvm4t3xa", bytes(range(16))])
def test_a_decoy_has_the_form_of_the_credentials_that_exist(salt: bytes) -> None:
    model = credential_of(SCRAM, "secret", salt, 8192)
    decoy = decoy_credential(b"secret", SCRAM, "mallory", model)
    assert decoy.iterations == 8192 and len(decoy.salt) in range(len(salt) - 3, len(salt) + 1)
    assert decoy.salt.isalnum() == salt.isalnum()
    assert (len(decoy.stored_key), len(decoy.server_key)) == (len(model.stored_key), len(model.server_key))
    assert decoy == decoy_credential(b"secret", SCRAM, "mallory", model)
    others = [
        decoy_credential(b"other", SCRAM, "mallory", model),
        decoy_credential(b"secret", SCRAM, "eve", model),
        decoy_credential(b"secret", "SCRAM-SHA-256", "mallory", model),
    ]
    assert len({one.salt for one in (decoy, *others)}) == 4


def test_a_scram_client_refuses_a_server_that_does_not_know_the_password() -> None:
    server = ScramServer(SCRAM, Users(credential_of(SCRAM, "other", b"salt", 4096)), "server")
    client = ScramClient(SCRAM, "alice", "secret", "client")
    challenge = server.respond(client.first(NOW_MS), NOW_MS)
    client.respond(challenge, NOW_MS)
    with pytest.raises(SaslFailed, match="not the one meant"):
        client.respond(b"v=" + base64.b64encode(bytes(64)), NOW_MS)


def test_a_replayed_scram_proof_is_refused() -> None:
    server, client = scram_server("one"), ScramClient(SCRAM, "alice", "secret", "client")
    first = client.first(NOW_MS)
    proof = client.respond(server.respond(first, NOW_MS), NOW_MS)
    assert proof is not None
    server.respond(proof, NOW_MS)
    with pytest.raises(SaslFailed, match="after the last"):
        server.respond(proof, NOW_MS)
    another = scram_server("two")
    another.respond(first, NOW_MS)
    with pytest.raises(SaslFailed, match="nonce"):
        another.respond(proof, NOW_MS)


def test_a_scram_server_that_asks_for_few_iterations_or_no_nonce_is_refused() -> None:
    for challenge in (b"r=clientx,s=c2FsdA==,i=1", b"r=client,s=c2FsdA==,i=4096", b"r=x,s=c2FsdA==,i=4096"):
        with pytest.raises(SaslFailed):
            ScramClient(SCRAM, "alice", "secret", "client").respond(challenge, NOW_MS)


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_arbitrary_bytes_log_in_or_raise_an_unexpected_error(token: bytes) -> None:
    makers: list[Callable[[], ServerExchange]] = [scram_server, lambda: PlainServer({"a": "b"})]
    for make in makers:
        server = make()
        with pytest.raises(SaslFailed):
            server.respond(token, NOW_MS)
        server = scram_server()
        server.respond(b"n,,n=alice,r=client", NOW_MS)
        with pytest.raises(SaslFailed):
            server.respond(token, NOW_MS)


def test_plain_knows_the_users_of_its_login_module() -> None:
    users = plain_users({"username": "me", "password": "mine", "user_alice": "secret", "user_": ""})
    server = PlainServer(users)
    login(server, PlainClient("alice", "secret"))
    assert server.login is not None
    assert server.login.name == "alice"
    for name, password in (("alice", "wrong"), ("bob", "secret"), ("me", "mine")):
        with pytest.raises(SaslFailed) as failed:
            PlainServer(users).respond(PlainClient(name, password).first(NOW_MS), NOW_MS)
        assert failed.value.to_client == "Authentication failed: Invalid username or password"


def test_a_delegation_token_logs_its_owner_in() -> None:
    server = scram_server()
    password = base64.b64encode(token_hmac(b"master", "token")).decode()
    login(server, ScramClient(SCRAM, "token", password, "client", {"tokenauth": "true"}))
    assert server.login is not None
    assert (server.login.name, server.login.token_authenticated) == ("alice", True)
    assert server.login.expires_ms == NOW_MS + 500
    unknown, client = scram_server(), ScramClient(SCRAM, "alice", "secret", "client", {"tokenauth": "true"})
    proof = client.respond(unknown.respond(client.first(NOW_MS), NOW_MS), NOW_MS)
    assert proof is not None
    with pytest.raises(SaslFailed, match="valid token 'alice'"):
        unknown.respond(proof, NOW_MS)


# -- sessions


def session(**max_reauth_ms: int) -> SaslSession:
    users = {"alice": "secret", "bob": "other"}
    limits = {"PLAIN": max_reauth_ms.get("plain", 0)}
    return SaslSession(SaslRules({"PLAIN": lambda: PlainServer(users), SCRAM: scram_server}, limits))


def test_a_session_serves_nothing_until_its_mechanism_is_done() -> None:
    one = session()
    one.on_api_versions()
    one.handshake("PLAIN", 1)
    assert not one.authenticated
    assert one.authenticate(b"\0alice\0secret", 0, NOW_MS) == (b"", 0)
    assert one.principal == Principal("User", "alice")
    assert one.authenticated
    assert one.expires_ms is None


def test_steps_that_the_state_does_not_allow_are_refused() -> None:
    one = session()
    with pytest.raises(IllegalSaslStep):
        one.authenticate(b"\0alice\0secret", 0, NOW_MS)
    one.on_api_versions()
    with pytest.raises(IllegalSaslStep):
        one.on_api_versions()
    one.handshake("PLAIN", 1)
    with pytest.raises(IllegalSaslStep):
        one.handshake("PLAIN", 1)


def test_a_mechanism_that_is_not_offered_ends_the_session() -> None:
    one = session()
    with pytest.raises(UnsupportedMechanism):
        one.handshake("GSSAPI", 1)
    assert one.state is SaslState.FAILED


def test_a_limited_session_is_extended_by_another_login_of_the_same_principal() -> None:
    one = session(plain=8000)
    one.handshake("PLAIN", 1)
    assert one.authenticate(b"\0alice\0secret", 100, NOW_MS) == (b"", 8000)
    assert one.expires_ms == 8100
    one.handshake("PLAIN", 1)
    assert not one.authenticated
    one.authenticate(b"\0alice\0secret", 5000, NOW_MS)
    assert one.expires_ms == 13_000
    one.handshake("PLAIN", 1)
    with pytest.raises(SaslFailed) as failed:
        one.authenticate(b"\0bob\0other", 6000, NOW_MS)
    text = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert one.failure_text(failed.value) == text
    assert not one.authenticated


def test_a_session_does_not_outlive_the_token_that_proved_it() -> None:
    one = session()
    one.handshake(SCRAM, 1)
    password = base64.b64encode(token_hmac(b"master", "token")).decode()
    client = ScramClient(SCRAM, "token", password, "client", {"tokenauth": "true"})
    answer, lifetime_ms = one.authenticate(client.first(0), 0, NOW_MS)
    assert lifetime_ms == 0
    proof = client.respond(answer, 0)
    assert proof is not None
    assert one.authenticate(proof, 0, NOW_MS)[1] == 500
    assert one.principal is not None
    assert one.principal.token_authenticated


def test_no_repr_contains_a_password() -> None:
    shown = [
        repr(PlainClient("alice", "secret")),
        repr(ScramClient(SCRAM, "alice", "secret", "n")),
        repr(ALICE),
    ]
    assert not any("secret" in text for text in shown)
