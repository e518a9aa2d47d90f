"""CreateAcls: each ACL is added or refused on its own; an existing one is not added again.

Facts: AclControlManager and AclApis of Apache Kafka 4.3.1. If one ACL of a request names ANY or MATCH,
Kafka's controller answers UNKNOWN_SERVER_ERROR for all of them. It closes the connection for a number 0.
"""

from __future__ import annotations

from kraftd.acl import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.record_limit import check_record_count
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kraftd.metadata.access_records import acl_record
from kraftd.metadata.image import Image
from kraftd.metadata.state import AclState
from kraftd.wire.error_code import ErrorCode

ACL_US, RECORD_US = 6, 2

_TYPES = frozenset(AclResourceType) - {AclResourceType.UNKNOWN, AclResourceType.ANY}
_PATTERNS = frozenset({AclPatternType.LITERAL, AclPatternType.PREFIXED})
_OPERATIONS = frozenset(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY}
_PERMISSIONS = frozenset({AclPermission.DENY, AclPermission.ALLOW})


@Sliced
def create_acls(
    ctx: Context, request: CreateAclsRequest, version: int
) -> Slices[Decision[CreateAclsResponse]]:
    """The new ACLs in one batch, and per ACL why one is refused (INVALID_REQUEST).

    Raises Refusal(POLICY_VIOLATION) for more than 10,000 new ACLs in a request.
    """
    answer = CreateAclsResponse(results=[])
    added: dict[AclState, bytes] = {}
    pace = Pace()
    for creation in request.creations:
        if pace.spent(ACL_US):
            yield
        problem = _problem(creation)
        if problem is not None:
            answer.results.append(AclCreationResult(ErrorCode.INVALID_REQUEST, problem))
            continue
        acl = AclState(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        if acl not in added and not ctx.image.has_acl(acl):
            added[acl] = _new_acl_id(ctx, ctx.image)
            check_record_count(len(added))
        answer.results.append(AclCreationResult(ErrorCode.NONE, ""))  # as Kafka, never null here
    records = []
    for acl, acl_id in added.items():
        if pace.spent(RECORD_US):
            yield
        records.append(acl_record(acl_id, acl))
    return Decision(answer, records)


def _problem(creation: AclCreation) -> str | None:
    """The reason to refuse an ACL, in the order of Kafka's checks; None for a valid one."""
    if creation.resource_type == AclResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not creation.resource_name:
        return "Invalid empty resource name"
    if creation.resource_type not in _TYPES:
        return f"Invalid resourceType {_name(AclResourceType, creation.resource_type)}"
    if creation.resource_pattern_type not in _PATTERNS:
        return f"Invalid patternType {_name(AclPatternType, creation.resource_pattern_type)}"
    if creation.operation not in _OPERATIONS:
        return f"Invalid operation {_name(AclOperation, creation.operation)}"
    if creation.permission_type not in _PERMISSIONS:
        return f"Invalid permissionType {_name(AclPermission, creation.permission_type)}"
    if ":" not in creation.principal:
        return (
            f"Could not parse principal from `{creation.principal[:200]}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def _name(kind: type[AclResourceType | AclPatternType | AclOperation | AclPermission], number: int) -> str:
    """Kafka's name of a number; UNKNOWN for a number without one."""
    return kind(number).name if number in kind._value2member_map_ else "UNKNOWN"


def _new_acl_id(ctx: Context, image: Image) -> bytes:
    while True:
        acl_id = ctx.rng.uuid()
        if acl_id not in image.acls:
            return acl_id
