"""The settings of simulated nodes for ACLs and delegation tokens."""

from __future__ import annotations

from kraftd.controller.context import TokenSettings
from kraftd.security.authorizer_settings import AuthorizerSettings

# Every client is allowed: the check is which ACLs the authorizer knows.
ALLOW_ALL = AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS"}))
TOKENS = TokenSettings(secret_key="simulated", max_lifetime_ms=30_000, expiry_check_interval_ms=5_000)
