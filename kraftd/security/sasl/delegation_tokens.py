"""Delegation tokens: their HMACs, and the SCRAM credentials of their owners (KIP-48)."""

from __future__ import annotations

import base64
import hmac

from kraftd.metadata.state import DelegationTokenState, ScramState
from kraftd.security.principals import parse_principal
from kraftd.security.sasl.scram import TokenCredential, credential_of
from kraftd.security.sasl.scram_messages import MIN_ITERATIONS

MAX_KEPT = 1024


def token_hmac(secret_key: bytes, token_id: str) -> bytes:
    """HMAC-SHA-512 of a token's id, which its owner gets and every node can compute."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


class TokenCredentials:
    """SCRAM credentials of delegation tokens, made on first use and kept: each costs several ms."""

    def __init__(self, secret_key: bytes, salt: bytes) -> None:
        self._secret_key = secret_key
        self._salt = salt
        self._kept: dict[tuple[str, str], ScramState] = {}

    def find(self, mechanism: str, token_id: str, token: DelegationTokenState) -> TokenCredential:
        """The credential of an existing token; the caller checks its expiry."""
        key = (mechanism, token_id)
        credential = self._kept.pop(key, None)
        if credential is None:
            password = base64.b64encode(token_hmac(self._secret_key, token_id)).decode()
            credential = credential_of(mechanism, password, self._salt, MIN_ITERATIONS)
        self._kept[key] = credential
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        owner = parse_principal(token.owner).name
        return TokenCredential(credential, owner, token.expiration_timestamp_ms)

    def __repr__(self) -> str:
        return f"<TokenCredentials {len(self._kept)} kept>"
