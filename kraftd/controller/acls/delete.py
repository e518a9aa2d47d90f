"""DeleteAcls: the ACLs that any filter of a request matches are removed in one batch.

Facts: AclControlManager of Apache Kafka 4.3.1, which ends the connection for a filter with a number 0.
"""

from __future__ import annotations

from kraftd.controller.acls.filters import AclFilter
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.record_limit import MAX_RECORDS_PER_REQUEST
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.metadata.state import AclState
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

ACLS_PER_PACE_CHECK = 250  # compared with a filter between two checks of the pace
EXAMINED_US = 250  # the cost of that many comparisons
FILTER_US, RECORD_US = 10, 1
MAX_MATCHES = 100_000  # named in one answer, by all its filters


@Sliced
def delete_acls(
    ctx: Context, request: DeleteAclsRequest, version: int
) -> Slices[Decision[DeleteAclsResponse]]:
    """The ACLs removed, and per filter those that it matched, or why it is refused (INVALID_REQUEST).

    An ACL that several filters match is in the answer of each. Raises Refusal(INVALID_REQUEST) for more
    matches than an answer may name, or for any match beside 10,000 ACLs to remove, one of them included.
    """
    answer = DeleteAclsResponse(filter_results=[])
    doomed: dict[bytes, None] = {}
    match_count = 0
    pace = Pace()
    for requested_filter in request.filters:
        wanted = acl_filter(requested_filter)
        problem = wanted.problem()
        if problem is not None:
            result = DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, problem)
            answer.filter_results.append(result)
            if pace.spent(FILTER_US):
                yield
            continue
        matches = wanted.matcher()
        result = DeleteAclsFilterResult(ErrorCode.NONE, None, [])
        for examined, (acl_id, acl) in enumerate(ctx.image.acls.items(), 1):
            if examined % ACLS_PER_PACE_CHECK == 0 and pace.spent(EXAMINED_US):
                yield
            if matches(acl):
                match_count += 1
                _check_count(len(doomed), match_count)
                doomed[acl_id] = None
                result.matching_acls.append(_matching(acl))
        answer.filter_results.append(result)
        if pace.spent(FILTER_US + len(ctx.image.acls) % ACLS_PER_PACE_CHECK):
            yield
    records = []
    for acl_id in doomed:
        if pace.spent(RECORD_US):
            yield
        records.append(VersionedRecord(RemoveAccessControlEntryRecord(acl_id), 0))
    return Decision(answer, records)


def acl_filter(requested_filter: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        requested_filter.resource_type_filter,
        requested_filter.resource_name_filter,
        requested_filter.pattern_type_filter,
        requested_filter.principal_filter,
        requested_filter.host_filter,
        requested_filter.operation,
        requested_filter.permission_type,
    )


def _check_count(removed_count: int, match_count: int) -> None:
    """Refuse the whole request if one more match exceeds a limit: in a long answer, a partial deletion could
    go unnoticed.
    """
    if removed_count >= MAX_RECORDS_PER_REQUEST:
        text = f"Cannot remove more than {MAX_RECORDS_PER_REQUEST} acls in a single delete operation."
        raise Refusal(ErrorCode.INVALID_REQUEST, text)
    if match_count > MAX_MATCHES:
        text = f"The filters match more than {MAX_MATCHES} ACLs together; send fewer filters at once."
        raise Refusal(ErrorCode.INVALID_REQUEST, text)


def _matching(acl: AclState) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        ErrorCode.NONE,
        None,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
