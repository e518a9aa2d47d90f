"""A call's permissions on the resources that its request names: topics, and resources with configs.

Without an authorizer nothing is filtered. The codes of denials and the hidden names are Kafka's
(ControllerApis).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.controller.configs.resources import ResourceType
from kraftd.controller.decision import Decision
from kraftd.controller.slices import Deciding
from kraftd.controller.topics.names import NameFilter, everything
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_CLUSTER = AclResourceType.CLUSTER
# By type of config resource: the authorized resource, and the code of a denial.
_OWNERS = {
    ResourceType.TOPIC: (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ResourceType.GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ResourceType.BROKER: (_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ResourceType.BROKER_LOGGER: (_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ResourceType.CLIENT_METRICS: (_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}
# Types whose configs the active controller changes; log levels belong to each node.
_DECIDED = frozenset(_OWNERS) - {ResourceType.BROKER_LOGGER}


def topics_allowed(
    node: Node, call: Call, operation: AclOperation, *, or_on_cluster: bool = False, quietly: bool = False
) -> NameFilter:
    """A filter that passes the topics on which the call may do this operation; with `or_on_cluster` all pass
    if it may do it on the cluster.
    """
    boundary = node.boundary
    if not boundary.has_authorizer:
        return everything
    if or_on_cluster and boundary.allows_quietly(call, operation, _CLUSTER, CLUSTER_NAME):
        return everything
    allows = boundary.allows_quietly if quietly else boundary.allows

    def allowed(names: Iterable[str]) -> Set[str]:
        return {name for name in names if allows(call, operation, AclResourceType.TOPIC, name)}

    return allowed


def refused_configs(
    node: Node, call: Call, resources: Iterable[Any], *, altering: bool, loggers: bool = True
) -> dict[int, ErrorCode]:
    """The denials among the resources of a request about configs, by their place in it.

    Left to the decision, which refuses them for other reasons: resources named twice (except loggers) or of
    unknown type, loggers if the API has none, and all resources of a DescribeConfigs with an unknown type.
    """
    if not node.boundary.has_authorizer:
        return {}
    requested = [(one.resource_type, one.resource_name) for one in resources]
    counts = Counter(requested)
    if not altering and any(type not in _OWNERS for type, _ in requested):
        return {}
    refused = {}
    for at, (type, name) in enumerate(requested):
        is_logger = type == ResourceType.BROKER_LOGGER
        if type not in _OWNERS or (is_logger and not loggers):
            continue
        if altering and counts[type, name] > 1 and not is_logger:
            continue
        resource_type, code = _OWNERS[ResourceType(type)]
        operation = AclOperation.ALTER_CONFIGS if altering else AclOperation.DESCRIBE_CONFIGS
        if altering and type == ResourceType.BROKER_LOGGER:
            operation = AclOperation.CLUSTER_ACTION
        resource = CLUSTER_NAME if resource_type is _CLUSTER else name
        if not node.boundary.allows(call, operation, resource_type, resource):
            refused[at] = code
    return refused


def no_topic_left(
    node: Node, call: Call, names: Iterable[str], operation: AclOperation, *, or_on_cluster: bool = False
) -> bool:
    """Return whether a standby can answer: every topic that is named once is denied.

    Kafka's controllers refuse such topics without checking for leadership.
    """
    if node.standing.active:
        return False
    once = [name for name, count in Counter(names).items() if count == 1 and name != METADATA_TOPIC]
    allowed = topics_allowed(node, call, operation, or_on_cluster=or_on_cluster, quietly=True)
    return not allowed(once)


def no_config_left(resources: Iterable[Any]) -> bool:
    """Return whether a standby can answer: every resource is denied, of a type without decisions, or named
    twice.
    """
    counts = Counter((one.resource_type, one.resource_name) for one in resources)
    return all(type not in _DECIDED or count > 1 for (type, _), count in counts.items())


def with_refusals(
    made: Decision[Any] | Deciding, field: str, refusals: list[Any]
) -> Decision[Any] | Deciding:
    """The decision, with the answers of earlier refusals appended to a list of its answer."""
    if not refusals:
        return made
    if isinstance(made, GeneratorType):
        return _in_slices(made, field, refusals)
    assert isinstance(made, Decision)
    getattr(made.answer, field).extend(refusals)
    return made


def _in_slices(deciding: Deciding, field: str, refusals: list[Any]) -> Deciding:
    decision = yield from deciding
    getattr(decision.answer, field).extend(refusals)
    return decision
