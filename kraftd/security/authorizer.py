"""The authorizer: Kafka's StandardAuthorizer, and the interface of custom ones.

Rules, in this order. 1. A super user may do everything. 2. Before the ACLs are known: AuthorizerNotReady. 3.
A matching DENY denies. 4. A matching ALLOW allows. 5. Otherwise denied, unless
`allow.everyone.if.no.acl.found` is set and no ACL covers the resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kraftd.acl import AclOperation, AclPatternType, AclResourceType
from kraftd.ground.pace import Slices, at_once
from kraftd.metadata.state import AclState
from kraftd.security.acls.acl_index import AclIndex
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.security.principals import Principal

NOT_BY_NAME = "no ACL with exactly this name allows it"


class AuthorizerNotReady(Exception):
    """The ACLs are not known yet; UNKNOWN_SERVER_ERROR on the wire, neither a denial nor an allowance."""


class Authorizer(Protocol):
    """Decides what principals may do. It must not block: the event loop calls it for every request.

    An authorizer may have `allows_by_name` as well, with the arguments of `allows`. It then decides which
    principals may read the metadata log as a topic. It may have `search_any`, a generator that returns what
    `allows_on_any` does, and pauses where that would take long.

    `begin_load`, `change` and `end_load` pass the committed ACLs, which it may ignore.
    """

    def allows(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Return whether the principal, from this host, may do the operation on the resource.

        Raises AuthorizerNotReady.
        """

    def allows_on_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        """Return whether it may do the operation on at least one resource of the type."""

    def reason(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> str:
        """The reason of the decision, as text for the audit."""

    def begin_load(self) -> None:
        """Begin to receive all ACLs anew, by `change`. Until `end_load` the old ones, if any, decide."""

    def change(self, removed: Iterable[AclState], added: Iterable[AclState]) -> None:
        """Add ACLs, then remove others; some may be among both."""

    def end_load(self) -> None:
        """End the load: all committed ACLs have arrived, and decide from now on."""


class StandardAuthorizer:
    """Kafka's authorizer over the ACLs of the metadata log."""

    def __init__(self, settings: AuthorizerSettings) -> None:
        self.super_users = settings.super_users
        self.allow_if_no_acl = settings.allow_if_no_acl
        self.index = AclIndex()
        self.loaded = False
        self._next: AclIndex | None = None  # during a load

    def allows(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        subject = f"{principal.type}:{principal.name}"
        if subject in self.super_users:
            return True
        if not self.loaded:
            raise AuthorizerNotReady
        match = self.index.match(subject, host, operation, resource_type, name)
        if match.denied:
            return False
        return match.allowed or (self.allow_if_no_acl and not match.of_resource)

    def allows_by_name(
        self, principal: Principal, host: str, operation: int, resource_type: int, name: str
    ) -> bool:
        """As `allows`, but an ACL allows the operation only if it has exactly this name."""
        if not self.allows(principal, host, operation, resource_type, name):
            return False
        subject = str(principal)
        if subject in self.super_users:
            return True
        if self.index.allows_by_name(subject, host, operation, resource_type, name):
            return True
        return not self.index.match(subject, host, operation, resource_type, name).allowed  # none is needed

    def allows_on_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        return at_once(self.search_any(principal, host, operation, resource_type))

    def search_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> Slices[bool]:
        """As `allows_on_any`, in slices."""
        # Kafka first checks a resource of a made-up name, so that super users pass.
        if self.allows(principal, host, operation, resource_type, "hardcode"):
            return True
        return (yield from self.index.may_on_any(str(principal), host, operation, resource_type))

    def allows_none(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        """Return whether `allows` is false for every resource of a type, if that is known at once."""
        subject = str(principal)
        if subject in self.super_users or not self.loaded or self.allow_if_no_acl:
            return False
        return not self.index.has_allowance(subject, host, operation, resource_type)

    def reason(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> str:
        subject = str(principal)
        if subject in self.super_users:
            return "super user"
        found = self.index.rule(subject, host, operation, resource_type, name)
        if found:
            return found
        allowed = self.loaded and self.allows(principal, host, operation, resource_type, name)
        return "no ACL, allow.everyone.if.no.acl.found" if allowed else "no ACL allows it"

    def begin_load(self) -> None:
        self._next = AclIndex()

    def change(self, removed: Iterable[AclState], added: Iterable[AclState]) -> None:
        index = self.index if self._next is None else self._next
        for acl in added:
            index.add(acl)
        for acl in removed:
            index.remove(acl)

    def end_load(self) -> None:
        if self._next is not None:
            self.index, self._next = self._next, None
        self.loaded = True

    def __repr__(self) -> str:
        state = repr(self.index) if self.loaded else "ACLs not loaded"
        return f"<StandardAuthorizer {len(self.super_users)} super users, {state}>"


def search_any(
    authorizer: Authorizer, principal: Principal, host: str, operation: int, resource_type: int
) -> Slices[bool]:
    """As `allows_on_any` of the authorizer, in slices if it has `search_any`."""
    search = getattr(authorizer, "search_any", None)
    if search is None:
        return authorizer.allows_on_any(principal, host, operation, resource_type)
    allowed: bool = yield from search(principal, host, operation, resource_type)
    return allowed


def describe_decision(
    allowed: bool, principal: Principal, host: str, operation: int, resource_type: int, name: str
) -> Mapping[str, str]:
    """The fields of an audit line, in the words of Kafka's."""
    return {
        "principal": str(principal),
        "result": "Allowed" if allowed else "Denied",
        "operation": AclOperation(operation).name,
        "host": host,
        "resource": f"{AclResourceType(resource_type).name}:{AclPatternType.LITERAL.name}:{name}",
    }
