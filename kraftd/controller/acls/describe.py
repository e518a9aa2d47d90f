"""DescribeAcls: the ACLs that a filter matches, by resource pattern. Any controller answers."""

from __future__ import annotations

from kraftd.controller.acls.delete import ACLS_PER_PACE_CHECK, EXAMINED_US
from kraftd.controller.acls.filters import AclFilter
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kraftd.wire.error_code import ErrorCode


@Sliced
def describe_acls(
    ctx: Context, request: DescribeAclsRequest, version: int
) -> Slices[Decision[DescribeAclsResponse]]:
    """The matching ACLs, equal ones once. Raises Refusal(INVALID_REQUEST) for an invalid filter."""
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    problem = wanted.problem()
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, problem)
    matches = wanted.matcher()
    by_pattern: dict[tuple[int, str, int], DescribeAclsResource] = {}
    seen = set()
    pace = Pace()
    for examined, acl in enumerate(ctx.image.acls.values(), 1):
        if examined % ACLS_PER_PACE_CHECK == 0 and pace.spent(EXAMINED_US):
            yield
        if not matches(acl) or acl in seen:
            continue
        seen.add(acl)
        pattern = (acl.resource_type, acl.resource_name, acl.pattern_type)
        resource = by_pattern.get(pattern)
        if resource is None:
            resource = by_pattern[pattern] = DescribeAclsResource(*pattern, [])
        resource.acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission_type))
    return Decision(DescribeAclsResponse(error_code=ErrorCode.NONE, resources=list(by_pattern.values())))
