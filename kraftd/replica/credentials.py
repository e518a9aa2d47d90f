"""The credentials for SCRAM logins: users and delegation tokens of the image, or of the bootstrap.

Until this node knows what is committed, the users of its snapshot and of its bootstrap checkpoint are valid.
So controllers can log in to each other and elect (Apache Kafka's cannot then). After that, only the image
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from kraftd.controller.context import Context
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.state import ScramState
from kraftd.replica.following import Following
from kraftd.security.sasl.decoys import decoy_credential
from kraftd.security.sasl.delegation_tokens import TokenCredentials
from kraftd.security.sasl.scram import TokenCredential
from kraftd.security.sasl.scram_messages import CODES
from kraftd.wire.record_frame import VersionedRecord

MAX_MODELS = 100  # credentials that a decoy's search for one of its mechanism looks at


class NodeCredentials:
    """The credentials of one node. Without a secret key there are no tokens."""

    def __init__(
        self,
        context: Context,
        following: Following,
        bootstrap: Sequence[VersionedRecord],
        cluster_id: str,
        token_secret_key: str,
        salt: bytes,
    ) -> None:
        self._context = context
        self._following = following
        self._token_salt = salt
        self._decoy_secret = f"{cluster_id}\0{token_secret_key}".encode()
        self._tokens = TokenCredentials(token_secret_key.encode(), salt) if token_secret_key else None
        self._bootstrap = {
            (record.message.mechanism, record.message.name): ScramState(
                bytes(record.message.salt),
                bytes(record.message.stored_key),
                bytes(record.message.server_key),
                record.message.iterations,
            )
            for record in bootstrap
            if isinstance(record.message, UserScramCredentialRecord)
        }

    def user(self, mechanism: str, name: str) -> ScramState | None:
        """The credential of a user for this mechanism, if it has one."""
        key = (CODES[mechanism], name)
        found = self._context.image.scram.get(key)
        if found is None and self._following.finalized_features.epoch < 0:
            return self._bootstrap.get(key)
        return found

    def token(self, mechanism: str, token_id: str, now_ms: int) -> TokenCredential | None:
        """The credential of a delegation token, if it exists and has not expired."""
        token = self._context.image.delegation_tokens.get(token_id)
        if self._tokens is None or token is None or token.expiration_timestamp_ms <= now_ms:
            return None
        return self._tokens.find(mechanism, token_id, token)

    def user_is_gone(self, mechanism: str, name: str) -> bool:
        """Return whether a user that has logged in has no such credential any more; not while that is not
        known.
        """
        return self._knows_image and self.user(mechanism, name) is None

    def token_is_gone(self, token_id: str, now_ms: int) -> bool:
        """Return whether a delegation token is removed or has expired; not while that is not known."""
        token = self._context.image.delegation_tokens.get(token_id)
        return self._knows_image and (token is None or token.expiration_timestamp_ms <= now_ms)

    @property
    def _knows_image(self) -> bool:
        return self._following.finalized_features.epoch >= 0 and not self._following.replay.loads_snapshot

    def decoy(self, mechanism: str, name: str, *, by_token: bool) -> ScramState:
        """The credential of an unknown user or token: it looks like those that exist."""
        model = None
        for (code, _), credential in islice(self._context.image.scram.items(), MAX_MODELS):
            if code == CODES[mechanism]:
                model = credential
                break
        decoy = decoy_credential(self._decoy_secret, mechanism, name, None if by_token else model)
        return msgspec.structs.replace(decoy, salt=self._token_salt) if by_token else decoy

    def __repr__(self) -> str:
        return f"<NodeCredentials, {len(self._bootstrap)} of the bootstrap>"
