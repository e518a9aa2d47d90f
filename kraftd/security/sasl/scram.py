"""SCRAM (RFC 5802) with SHA-256 and SHA-512: the server's side, and its credentials of a password.

Kafka's dialect: no channel binding, and names are compared as they are. The extension ``tokenauth=true`` says
that the user is a delegation token and the password its HMAC.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Protocol

from kraftd.metadata.state import ScramState
from kraftd.security.sasl.mechanism import Login, SaslFailed
from kraftd.security.sasl.scram_messages import (
    ALGORITHMS,
    CLIENT_FINAL,
    CLIENT_FIRST,
    MIN_ITERATIONS,
    TOKEN_AUTH,
    decode_base64,
    message_text,
    user_name,
    xor,
)


class TokenCredential:
    """The credential of a delegation token: its owner's name, until the token expires."""

    __slots__ = ("credential", "expires_ms", "owner")

    def __init__(self, credential: ScramState, owner: str, expires_ms: int) -> None:
        self.credential = credential
        self.owner = owner
        self.expires_ms = expires_ms

    def __repr__(self) -> str:
        return f"<TokenCredential of {self.owner}>"


class Credentials(Protocol):
    """The source of SCRAM's credentials."""

    def user(self, mechanism: str, name: str) -> ScramState | None:
        """The credential of a user for this mechanism, if it has one."""

    def token(self, mechanism: str, token_id: str, now_ms: int) -> TokenCredential | None:
        """The credential of a delegation token, if it exists and has not expired."""

    def user_is_gone(self, mechanism: str, name: str) -> bool:
        """Return whether a user that has logged in has no such credential any more."""

    def token_is_gone(self, token_id: str, now_ms: int) -> bool:
        """Return whether a delegation token by which a client has logged in is removed or has expired."""

    def decoy(self, mechanism: str, name: str, *, by_token: bool) -> ScramState:
        """The credential of an unknown user or token, whose login fails like one by a wrong password."""


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramState:
    """The server's credential of a password. Slow on purpose: several milliseconds."""
    algorithm = ALGORITHMS[mechanism]
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    return ScramState(salt, stored_key, hmac.digest(salted, b"Server Key", algorithm), iterations)


class ScramServer:
    """One login by SCRAM; `nonce` must be fresh and unguessable."""

    def __init__(self, mechanism: str, credentials: Credentials, nonce: str) -> None:
        self.login: Login | None = None
        self.claimed = ""
        self._mechanism = mechanism
        self._algorithm = ALGORITHMS[mechanism]
        self._credentials = credentials
        self._nonce = nonce
        self._pending: _Pending | None = None
        self._over = False

    def respond(self, token: bytes, now_ms: int) -> bytes:
        text = message_text(token)
        if self._over:
            raise SaslFailed("a SCRAM message after the last one")
        if self._pending is None:
            return self._first(text, now_ms)
        return self._final(text, self._pending)

    def _first(self, text: str, now_ms: int) -> bytes:
        match = CLIENT_FIRST.fullmatch(text)
        if match is None:
            raise SaslFailed("malformed first SCRAM message")
        self.claimed = name = user_name(match["name"])
        extensions = dict(part.split("=", 1) for part in match["more"].split(",") if part)
        by_token = extensions.get(TOKEN_AUTH, "").lower() == "true"
        credential, login = self._find(name, by_token, now_ms)
        if match["authzid"] not in (None, name):
            to_client = (
                "Authentication failed: Client requested an authorization id that is different from username"
            )
            raise SaslFailed("another authorization id", to_client)
        if credential.iterations < MIN_ITERATIONS:
            raise SaslFailed(f"the credential of {name!r} has fewer than {MIN_ITERATIONS} iterations")
        nonce = match["nonce"] + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={nonce},s={salt},i={credential.iterations}"
        self._pending = _Pending(match["header"], match["bare"], nonce, answer, name, credential, login)
        return answer.encode()

    def _find(self, name: str, by_token: bool, now_ms: int) -> tuple[ScramState, Login | None]:
        """The credential of a user or token, and the login by it: a decoy and None for an unknown one."""
        if by_token:
            token = self._credentials.token(self._mechanism, name, now_ms)
            if token is not None:
                login = Login(
                    token.owner,
                    token_authenticated=True,
                    expires_ms=token.expires_ms,
                    is_revoked=lambda now_ms: self._credentials.token_is_gone(name, now_ms),
                )
                return token.credential, login
        else:
            credential = self._credentials.user(self._mechanism, name)
            if credential is not None:
                login = Login(
                    name, is_revoked=lambda _: self._credentials.user_is_gone(self._mechanism, name)
                )
                return credential, login
        return self._credentials.decoy(self._mechanism, name, by_token=by_token), None

    def _final(self, text: str, pending: _Pending) -> bytes:
        self._over = True  # a replayed message, or another guess, needs a new exchange
        match = CLIENT_FINAL.fullmatch(text)
        if match is None:
            raise SaslFailed("malformed final SCRAM message")
        if match["nonce"] != pending.nonce:
            raise SaslFailed("the nonce is that of another exchange")
        if decode_base64(match["channel"]) != pending.header.encode():
            raise SaslFailed("the channel binding is that of another exchange")
        message = f"{pending.bare},{pending.answer},{match['bare']}".encode()
        credential, proof = pending.credential, decode_base64(match["proof"])
        signature = hmac.digest(credential.stored_key, message, self._algorithm)
        if len(proof) != len(signature):
            raise SaslFailed("a proof of another size")
        client_key = xor(proof, signature)
        stored_key = hashlib.new(self._algorithm, client_key).digest()
        is_equal = hmac.compare_digest(stored_key, credential.stored_key)
        if pending.login is None:
            raise SaslFailed(
                f"no user or valid token {pending.name!r} with a credential of {self._mechanism}"
            )
        if not is_equal:
            raise SaslFailed(f"wrong password of {pending.login.name!r}")
        self.login = pending.login
        verifier = hmac.digest(credential.server_key, message, self._algorithm)
        return b"v=" + base64.b64encode(verifier)


class _Pending:
    """A login between its two steps."""

    __slots__ = ("answer", "bare", "credential", "header", "login", "name", "nonce")

    def __init__(
        self,
        header: str,
        bare: str,
        nonce: str,
        answer: str,
        name: str,
        credential: ScramState,
        login: Login | None,
    ) -> None:
        self.header = header
        self.bare = bare
        self.nonce = nonce
        self.answer = answer
        self.name = name
        self.credential = credential
        self.login = login
