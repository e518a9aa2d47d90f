"""One permission of a sender, asked for each of very many resources that a request names."""

from __future__ import annotations

from kraftd.acl import AclOperation, AclResourceType
from kraftd.requests.authorization_audit import Requester
from kraftd.requests.boundary import Boundary

ALLOWED_US, DENIED_US = 8, 60  # microseconds, for the pace; most of a denial is its line for the audit
REFUSED_UNASKED_US = 1
# So many denials are asked for and audited one by one; then it is asked whether there can be anything else.
MAX_SINGLE_DENIALS = 50


class Permission:
    """Whether the sender of a request may do an operation on resources of a type.

    A sender that may do it on no resource of the type is refused without a look at each one. `end` audits
    the number of those refusals. `cost_us` is what the last answer has cost.
    """

    __slots__ = (
        "_boundary",
        "_call",
        "_denials",
        "_needed",
        "_quietly",
        "_unasked",
        "_unasked_count",
        "cost_us",
    )

    def __init__(
        self,
        boundary: Boundary,
        call: Requester,
        operation: AclOperation,
        type: AclResourceType,
        *,
        quietly: bool = False,
    ) -> None:
        self._boundary = boundary
        self._call = call
        self._needed = operation, type
        self._quietly = quietly
        self._denials = 0
        self._unasked = False
        self._unasked_count = 0
        self.cost_us = 0

    def allows(self, name: str) -> bool:
        """Return whether the sender may do it on this resource. Raises AuthorizerNotReady."""
        boundary = self._boundary
        if not boundary.has_authorizer:
            return True
        if self._unasked:
            self._unasked_count += 1
            self.cost_us = REFUSED_UNASKED_US
            return False
        self.cost_us = ALLOWED_US
        ask = boundary.allows_quietly if self._quietly else boundary.allows
        if ask(self._call, *self._needed, name):
            return True
        self._denials += 1
        if not self._quietly:
            self.cost_us = DENIED_US
        if self._denials == MAX_SINGLE_DENIALS:
            self._unasked = boundary.allows_none(self._call, *self._needed)
        return False

    def end(self) -> None:
        """Audit the refusals without a question."""
        if self._unasked_count and not self._quietly:
            self._boundary.note_denials(self._call, *self._needed, self._unasked_count)
            self._unasked_count = 0

    def __repr__(self) -> str:
        operation, type = self._needed
        return f"<Permission {operation.name} on {type.name}, {self._denials + self._unasked_count} denied>"
