"""This side's logins at other nodes: a new exchange of the configured mechanism each time.

The mechanisms are imported where one is configured, so that a node without logins starts sooner.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kraftd.config.security import ClientSecurity, file_of_url
from kraftd.input_file import read_input_file
from kraftd.security.sasl.jwt_validation import MAX_TOKEN_BYTES
from kraftd.security.sasl.mechanism import OAUTHBEARER, PLAIN, ClientExchange, SaslFailed

if TYPE_CHECKING:
    from kraftd.security.sasl.scram_client import SaltedPasswords


def client_login(
    client: ClientSecurity, granted: Callable[[], str] | None = None
) -> Callable[[], ClientExchange] | None:
    """The function that begins one of this side's logins; None if servers require none.

    `granted` returns the current token of a client with a grant; it may raise SaslFailed.
    """
    if not client.mechanism or client.jaas is None:
        return None
    options: Mapping[str, Any] = client.jaas.options
    if client.mechanism == PLAIN:
        from kraftd.security.sasl.plain import PlainClient

        return partial(PlainClient, options["username"], options["password"])
    if client.mechanism == OAUTHBEARER:
        from kraftd.security.sasl.oauthbearer import OAuthBearerClient

        token = granted or partial(_read_token, client.token_url)
        return lambda: OAuthBearerClient(token())
    from kraftd.security.sasl.scram_client import ScramClient
    from kraftd.security.sasl.scram_messages import TOKEN_AUTH

    salted: SaltedPasswords = {}
    by_token = str(options.get(TOKEN_AUTH, "")).lower() == "true"
    extensions = {TOKEN_AUTH: "true"} if by_token else {}
    return lambda: ScramClient(
        client.mechanism, options["username"], options["password"], new_nonce(), extensions, salted
    )


def new_nonce() -> str:
    """A nonce of SCRAM: 144 random bits."""
    return secrets.token_urlsafe(18)


def _read_token(url: str) -> str:
    path = file_of_url(url)
    try:
        return read_input_file(path, MAX_TOKEN_BYTES, wait_s=0).decode("ascii").strip()  # on the event loop
    except (OSError, UnicodeDecodeError) as error:
        raise SaslFailed(f"the token in {path} cannot be read: {error}") from None
