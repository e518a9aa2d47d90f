"""How the nodes of a simulated cluster are set up for ACLs and delegation tokens."""

from __future__ import annotations

from kraftd.controller.context import TokenSettings
from kraftd.security.authorizer_settings import AuthorizerSettings

# Every client is let in: what is looked at is which ACLs the authorizer knows.
EVERYBODY = AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS"}))
TOKENS = TokenSettings(secret_key="simulated", max_lifetime_ms=30_000, expiry_check_interval_ms=5_000)
