"""The APIs of a listener: intake, ApiVersions and Envelope use its registry.

A registry belongs to one kind of listener, because the same API may have another handler on another kind:
Fetch of a controller listener is the quorum's, Fetch of a client listener reads a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from copy import copy
from enum import Enum
from functools import cached_property

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.messages.registry import APIS
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey, latest_version_unstable, request_class, valid_versions
from kraftd.wire.message import Message, Range

Handle = Callable[[Call], Generator[None, None, None] | None]  # a generator, if it may take long


class ListenerKind(Enum):
    """The users of a listener. Kafka's broker listeners are client listeners here."""

    CONTROLLER = "controller"
    CLIENT = "client"
    BROKER = "broker"


CONTROLLERS = frozenset({ListenerKind.CONTROLLER})

# What a broker may forward in an Envelope for a client (Kafka's `ApiKeys.forwardable`).
FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)


class Route:
    """One API of a node: its versions, the operation to authorize, its listener kinds, its handler.

    `operation` and `resource_type` are None for an API that needs no authorization, or whose handler has
    rules of its own for it. The boundary authorizes operations on the cluster itself (`door`). For any other
    type, the handler authorizes each resource that the request names, by the boundary's `allows`. `load`
    returns the handler at the first request. `versions` narrows Kafka's.
    """

    door: tuple[AclOperation, AclResourceType, str] | None

    def __init__(
        self,
        key: ApiKey,
        operation: AclOperation | None,
        resource_type: AclResourceType | None,
        load: Callable[[], Handle],
        *,
        kinds: frozenset[ListenerKind] = CONTROLLERS,
        versions: Range | None = None,
    ) -> None:
        self.key = key
        self.kinds = kinds
        self.first, self.last = versions or valid_versions(key)
        self.flexible: int = APIS[key][7]
        self.door = None
        if operation is not None and resource_type is AclResourceType.CLUSTER:
            self.door = (operation, resource_type, CLUSTER_NAME)
        self._load = load

    @cached_property
    def request(self) -> type[Message]:
        """The class of its requests, loaded on first use."""
        return request_class(self.key)

    @cached_property
    def handle(self) -> Handle:
        """Its handler, loaded on first use."""
        return self._load()

    def __repr__(self) -> str:
        return f"<Route {self.key.name} v{self.first}-{self.last}>"


class Registry:
    """The routes of one kind of listener, by API key, in ascending order.

    Versions that Kafka calls unstable are left out unless `unstable` (`unstable.api.versions.enable`).
    Raises ValueError for two routes of one API.
    """

    def __init__(self, kind: ListenerKind, routes: Iterable[Route], *, unstable: bool = False) -> None:
        self.kind = kind
        self.routes: dict[int, Route] = {}
        for route in sorted((one for one in routes if kind in one.kinds), key=lambda route: route.key):
            if route.key in self.routes:
                raise ValueError(f"{route.key.name} has two handlers on {kind.value} listeners")
            newest = valid_versions(route.key)[1]
            if latest_version_unstable(route.key) and route.last == newest and not unstable:
                route = copy(route)
                route.last -= 1
            self.routes[int(route.key)] = route

    def versions(self) -> list[tuple[int, int, int]]:
        """API key, first and last version of each, as ApiVersions lists them."""
        return [(key, route.first, route.last) for key, route in self.routes.items()]

    def __repr__(self) -> str:
        return f"<Registry of {len(self.routes)} APIs for {self.kind.value} listeners>"
