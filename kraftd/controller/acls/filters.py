"""The ACL filters of DescribeAcls and DeleteAcls (KIP-290), and which ACLs they match."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kraftd.acl import WILDCARD, AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.metadata.state import AclState

_TYPES = frozenset(AclResourceType) - {AclResourceType.UNKNOWN}
_PATTERNS = frozenset(AclPatternType) - {AclPatternType.UNKNOWN}
_OPERATIONS = frozenset(AclOperation) - {AclOperation.UNKNOWN}
_PERMISSIONS = frozenset(AclPermission) - {AclPermission.UNKNOWN}


class AclFilter(Struct, frozen=True):
    """A filter: None as a text, and ANY as a number, match everything.

    The pattern type MATCH matches every ACL that covers the named resource: literal, wildcard or prefixed.
    """

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def problem(self) -> str | None:
        """The filter's fault, with the field; None for a valid one."""
        for what, number, known in (
            ("resource type", self.resource_type, _TYPES),
            ("pattern type", self.pattern_type, _PATTERNS),
            ("operation", self.operation, _OPERATIONS),
            ("permission type", self.permission_type, _PERMISSIONS),
        ):
            if number not in known:
                return f"There is no {what} {number}."
        return None

    def matcher(self) -> Callable[[AclState], bool]:
        """A function that returns whether an ACL matches."""
        tests: list[Callable[[AclState], bool]] = []
        if self.resource_type != AclResourceType.ANY:
            tests.append(lambda acl: acl.resource_type == self.resource_type)
        if self.pattern_type in (AclPatternType.LITERAL, AclPatternType.PREFIXED):
            tests.append(lambda acl: acl.pattern_type == self.pattern_type)
        if self.name is not None:
            tests.append(self._speaks_of if self.pattern_type == AclPatternType.MATCH else self._is_named)
        if self.principal is not None:
            tests.append(lambda acl: acl.principal == self.principal)
        if self.host is not None:
            tests.append(lambda acl: acl.host == self.host)
        if self.operation != AclOperation.ANY:
            tests.append(lambda acl: acl.operation == self.operation)
        if self.permission_type != AclPermission.ANY:
            tests.append(lambda acl: acl.permission_type == self.permission_type)
        return lambda acl: all(test(acl) for test in tests)

    def _is_named(self, acl: AclState) -> bool:
        return acl.resource_name == self.name

    def _speaks_of(self, acl: AclState) -> bool:
        """Return whether the ACL's pattern matches the named resource."""
        assert self.name is not None
        if acl.pattern_type == AclPatternType.PREFIXED:
            return self.name.startswith(acl.resource_name)
        return acl.resource_name in (self.name, WILDCARD)
