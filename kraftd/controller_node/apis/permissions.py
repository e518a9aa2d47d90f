"""What of a request is decided: its elements are sorted out before, in slices, as Kafka's ControllerApis do.

Refused here: elements that the sender may not change, elements named twice, and all others whose answer does
not depend on the metadata. A decision, for which all other decisions wait, only gets the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.controller.configs.resources import ResourceType
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Slices
from kraftd.named_tuple import NamedTuple
from kraftd.requests.permission import Permission
from kraftd.requests.refused_rows import ROW_US, RefusedRows
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

ELEMENT_US = 1  # microseconds, for the pace: an element that is not refused, without its authorization

_CLUSTER = AclResourceType.CLUSTER
# By type of config resource: the authorized resource, and the code of a denial.
_OWNERS = {
    ResourceType.TOPIC: (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ResourceType.GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ResourceType.BROKER: (_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ResourceType.BROKER_LOGGER: (_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ResourceType.CLIENT_METRICS: (_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}

Problem = tuple[ErrorCode, str | None]


class TopicPermission:
    """The permission for an operation on topics; with `or_on_cluster` the cluster's is enough for all."""

    __slots__ = ("_on_topics",)

    def __init__(
        self,
        node: Node,
        call: Call,
        operation: AclOperation,
        *,
        or_on_cluster: bool = False,
        quietly: bool = False,
    ) -> None:
        boundary = node.boundary
        self._on_topics: Permission | None = None
        if not boundary.has_authorizer:
            return
        if not (or_on_cluster and boundary.allows_quietly(call, operation, _CLUSTER, CLUSTER_NAME)):
            self._on_topics = Permission(boundary, call, operation, AclResourceType.TOPIC, quietly=quietly)

    def allows(self, name: str) -> bool:
        """Return whether the sender may do it on this topic."""
        return self._on_topics is None or self._on_topics.allows(name)

    @property
    def is_on_cluster(self) -> bool:
        """Return whether the cluster's permission is enough."""
        return self._on_topics is None

    @property
    def cost_us(self) -> int:
        """What the last answer has cost, in microseconds."""
        return 0 if self._on_topics is None else self._on_topics.cost_us

    def end(self) -> None:
        """Audit the refusals without a question."""
        if self._on_topics is not None:
            self._on_topics.end()

    def __repr__(self) -> str:
        return f"<TopicPermission {self._on_topics!r}>"


def allows_no_topic(node: Node, call: Call, operation: AclOperation, *, or_on_cluster: bool = False) -> bool:
    """Return whether the sender is known to have no right to the operation on any topic."""
    boundary = node.boundary
    if or_on_cluster and boundary.allows_quietly(call, operation, _CLUSTER, CLUSTER_NAME):
        return False
    return boundary.allows_none(call, operation, AclResourceType.TOPIC)


class TopicProblems(NamedTuple):
    """Why an API refuses topics; `row` makes the answer's row of one."""

    row: Callable[[str, ErrorCode, str | None], Message]
    repeated: Problem
    denied: Problem
    reserved: dict[str, Problem]


def sort_out_topics(
    topics: list[Any], permission: TopicPermission, problems: TopicProblems, refused: RefusedRows
) -> Slices[list[Any]]:
    """The topics that are named once, and that the sender may change; the others are refused, each once."""
    left: list[Any] = []
    pace = Pace()
    times = None  # one topic, as most requests have, is named once
    if len(topics) > 1:
        times = yield from count_in_slices(topics, attrgetter("name"), pace)
    for topic in topics:
        name = topic.name
        count = 1 if times is None else times.take(name)
        if not count:
            continue  # answered at its first place
        problem = problems.repeated if count > 1 else problems.reserved.get(name)
        cost_us = ELEMENT_US
        if problem is None:
            if permission.allows(name):
                left.append(topic)
            else:
                problem = problems.denied
            cost_us += permission.cost_us
        if problem is not None:
            refused.add(problems.row(name, *problem))
            cost_us += ROW_US
        if pace.spent(cost_us):
            yield
    permission.end()
    refused.end()
    return left


def with_only(request: Any, field: str, left: list[Any]) -> Any:
    """The request with these of its elements; itself, if they are all of them."""
    return request if len(getattr(request, field)) == len(left) else structs.replace(request, **{field: left})


class ConfigPermissions:
    """The permissions of a call on resources with configs, with the codes of Kafka's ControllerApis."""

    def __init__(self, node: Node, call: Call, *, altering: bool) -> None:
        self._node = node
        self._call = call
        self._operation = AclOperation.ALTER_CONFIGS if altering else AclOperation.DESCRIBE_CONFIGS
        self._altering = altering
        self._by_type: dict[int, Permission] = {}
        self.cost_us = 0

    def denial(self, type: int, name: str) -> ErrorCode | None:
        """The code that refuses a resource of a known type; None if the sender is allowed."""
        resource_type, code = _OWNERS[type]  # type: ignore[index]
        permission = self._by_type.get(type)
        if permission is None:
            operation = self._operation
            if self._altering and type == ResourceType.BROKER_LOGGER:
                operation = AclOperation.CLUSTER_ACTION
            permission = Permission(self._node.boundary, self._call, operation, resource_type)
            self._by_type[type] = permission
        allowed = permission.allows(CLUSTER_NAME if resource_type is _CLUSTER else name)
        self.cost_us = permission.cost_us
        return None if allowed else code

    def end(self) -> None:
        """Audit the refusals without a question."""
        for permission in self._by_type.values():
            permission.end()

    def __repr__(self) -> str:
        return f"<ConfigPermissions for {self._operation.name}>"


def is_resource_type(number: int) -> bool:
    """Return whether resources of this type have configs."""
    return number in _OWNERS
