"""The client's side of SCRAM."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

from kraftd.security.sasl.mechanism import SaslFailed
from kraftd.security.sasl.scram_messages import (
    ALGORITHMS,
    MAX_CLIENT_ITERATIONS,
    MIN_ITERATIONS,
    SERVER_FINAL,
    SERVER_FIRST,
    decode_base64,
    message_text,
    sasl_name,
    xor,
)

SaltedPasswords = dict[tuple[bytes, int], bytes]


class ScramClient:
    """One login as a user or by a delegation token.

    `salted` keeps slow results for the next login with the same password.
    """

    def __init__(
        self,
        mechanism: str,
        name: str,
        password: str,
        nonce: str,
        extensions: Mapping[str, str] | None = None,
        salted: SaltedPasswords | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.complete = False
        self._algorithm = ALGORITHMS[mechanism]
        self._password = password
        self._nonce = nonce
        more = "".join(f",{key}={value}" for key, value in (extensions or {}).items())
        self._bare = f"n={sasl_name(name)},r={nonce}{more}"
        self._verifier: bytes | None = None
        self._salted = {} if salted is None else salted

    def first(self, now_ms: int) -> bytes:
        return f"n,,{self._bare}".encode()

    def respond(self, challenge: bytes, now_ms: int) -> bytes | None:
        text = message_text(challenge)
        if self._verifier is None:
            return self._final(text)
        match = SERVER_FINAL.fullmatch(text)
        if match is None or match["error"] is not None:
            raise SaslFailed("the server refused the proof")
        if not hmac.compare_digest(decode_base64(match["signature"]), self._verifier):
            raise SaslFailed("the server does not know the password either: it is not the one meant")
        self.complete = True
        return None

    def _final(self, text: str) -> bytes:
        match = SERVER_FIRST.fullmatch(text)
        if match is None:
            raise SaslFailed("malformed first SCRAM message of the server")
        nonce, iterations = match["nonce"], int(match["iterations"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslFailed("the server's nonce does not begin with this one's")
        if not MIN_ITERATIONS <= iterations <= MAX_CLIENT_ITERATIONS:
            raise SaslFailed(f"the server asks for {iterations} iterations")
        salted = self._salted_password(decode_base64(match["salt"]), iterations)
        client_key = hmac.digest(salted, b"Client Key", self._algorithm)
        stored_key = hashlib.new(self._algorithm, client_key).digest()
        bare = f"c=biws,r={nonce}"
        message = f"{self._bare},{text},{bare}".encode()
        proof = xor(client_key, hmac.digest(stored_key, message, self._algorithm))
        server_key = hmac.digest(salted, b"Server Key", self._algorithm)
        self._verifier = hmac.digest(server_key, message, self._algorithm)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def _salted_password(self, salt: bytes, iterations: int) -> bytes:
        known = self._salted.get((salt, iterations))
        if known is None:
            known = hashlib.pbkdf2_hmac(self._algorithm, self._password.encode(), salt, iterations)
            self._salted.clear()
            self._salted[salt, iterations] = known
        return known

    def __repr__(self) -> str:
        return f"<ScramClient {self.mechanism}{', complete' if self.complete else ''}>"
