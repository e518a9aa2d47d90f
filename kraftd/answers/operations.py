"""The operations that a client may do: the bits in answers about topics, groups and the cluster (KIP-430)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.boundary import Boundary
    from kraftd.requests.call import Call

DECISION_US = 15  # of an authorizer with very many ACLs
# What Kafka's AclEntry supports for each type of resource.
SUPPORTED = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    AclResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
}


class Authorizing(Protocol):
    """A node that knows what clients may do."""

    @property
    def boundary(self) -> Boundary: ...


def allowed_operations(
    node: Authorizing, call: Call, resource_type: AclResourceType, name: str = CLUSTER_NAME
) -> int:
    """Bit n is set if the client may do the operation of number n; 0 of a cluster it may not describe."""
    if resource_type == AclResourceType.CLUSTER and not node.boundary.allows(
        call, AclOperation.DESCRIBE, resource_type, name
    ):
        return 0
    allowed = 0
    for operation in SUPPORTED[resource_type]:
        if node.boundary.allows_quietly(call, operation, resource_type, name):
            allowed |= 1 << operation
    return allowed


def decision_us(node: AnsweringNode) -> int:
    """About how long one decision takes, in microseconds."""
    return DECISION_US if node.boundary.has_authorizer else 1


def operations_us(node: AnsweringNode, resource_type: AclResourceType) -> int:
    """About how long `allowed_operations` takes, in microseconds."""
    return decision_us(node) * len(SUPPORTED[resource_type])


def may_describe_configs(node: AnsweringNode, call: Call) -> bool:
    """Return whether the client may see the configs of the cluster, without an audit event."""
    operation = AclOperation.DESCRIBE_CONFIGS
    return node.boundary.allows_quietly(call, operation, AclResourceType.CLUSTER, CLUSTER_NAME)


def check_may_describe_configs(node: AnsweringNode, call: Call) -> None:
    """Raises Refusal for a client that may not see the configs of the cluster."""
    operation = AclOperation.DESCRIBE_CONFIGS
    if not node.boundary.allows(call, operation, AclResourceType.CLUSTER, CLUSTER_NAME):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
