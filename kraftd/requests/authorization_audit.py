"""The audit of authorization: a line for every denial and, if configured, for every allowance.

A period has a limited number of lines; the omitted ones are counted and reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kraftd.acl import AclResourceType
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.security.authorizer import Authorizer, describe_decision
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey, is_known

MAX_LINES_PER_PERIOD = 200


class Requester(Protocol):
    """The call that needs a permission, or the kept part of it."""

    @property
    def key(self) -> int: ...

    @property
    def principal(self) -> Principal: ...

    @property
    def host(self) -> str: ...

    @property
    def client_id(self) -> str: ...


class AuthorizationAudit:
    """Events for the audit stream and the log, with the fields of Kafka's authorizer log."""

    def __init__(self, outbox: Outbox, *, allowances: bool = False) -> None:
        self.allowances = allowances
        self.denied = 0
        self.allowed = 0
        self._outbox = outbox
        self._left = MAX_LINES_PER_PERIOD

    def note(
        self,
        authorizer: Authorizer,
        allowed: bool,
        call: Requester,
        operation: int,
        type: int,
        name: str,
        rule: str | None = None,
    ) -> None:
        """Count a decision, and log it if it deserves a line, with the authorizer's reason unless given."""
        if allowed:
            self.allowed += 1
            if not self.allowances:
                return
        else:
            self.denied += 1
        self._left -= 1
        if self._left < 0:
            return
        fields = describe_decision(allowed, call.principal, call.host, operation, type, name)
        if rule is None:
            rule = authorizer.reason(call.principal, call.host, operation, type, name)
        self._write(allowed, call, fields, rule)

    def note_denials(self, call: Requester, operation: int, type: int, count: int) -> None:
        """Count denials of one request to a principal that may do the operation on no resource of the type;
        log them in one line.
        """
        self.denied += count
        self._left -= 1
        if self._left < 0:
            return
        fields = describe_decision(False, call.principal, call.host, operation, type, "")
        fields = {**fields, "resource": f"{count} more of type {AclResourceType(type).name}"}
        self._write(False, call, {**fields, "count": count}, "no ACL allows it on any resource of the type")

    def _write(self, allowed: bool, call: Requester, fields: Mapping[str, Any], rule: str) -> None:
        request = ApiKey(call.key).name if is_known(call.key) else str(call.key)
        event = "authorization allowed" if allowed else "authorization denied"
        details = {**fields, "client_id": call.client_id, "api": request, "rule": rule}
        self._outbox.emit(AuditLine(event, -1, details))
        self._outbox.log("debug" if allowed else "info", event, **details)

    def end_period(self) -> int:
        """Begin a new period; returns how many lines the last one omitted."""
        left_out = max(0, -self._left)
        self._left = MAX_LINES_PER_PERIOD
        return left_out

    def __repr__(self) -> str:
        return f"<AuthorizationAudit {self.denied} denied, {self.allowed} allowed>"
