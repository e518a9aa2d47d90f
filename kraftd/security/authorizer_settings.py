"""The settings of the authorizer: its kind, super users, and the default without an ACL."""

from __future__ import annotations

import msgspec

from kraftd.security.principals import parse_principal

CLASS_NAME = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class AuthorizerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of an authorizer: `super.users` as texts, and the default without an ACL."""

    super_users: frozenset[str] = frozenset()
    allow_if_no_acl: bool = False

    def __repr__(self) -> str:
        return f"<AuthorizerSettings {len(self.super_users)} super users>"


def parse_super_users(text: str) -> frozenset[str]:
    """The principals of ``super.users``, separated by semicolons. Raises ValueError for an invalid one."""
    users = {user for user in map(str.strip, text.split(";")) if user}
    for user in users:
        parse_principal(user)
    return frozenset(users)
