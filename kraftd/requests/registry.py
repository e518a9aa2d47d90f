"""The APIs of a listener: intake, ApiVersions and Envelope use its registry.

A registry belongs to one kind of listener, because the same API may have another handler on another kind:
Fetch of a controller listener is the quorum's, Fetch of a client listener reads a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from copy import copy
from functools import cached_property
from importlib import import_module
from types import MethodType

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.messages.registry import APIS
from kraftd.named_tuple import NamedTuple
from kraftd.requests.call import Call
from kraftd.requests.unread_refusals import UnreadRefusal, UnreadRow, WholeRefusal
from kraftd.wire.api import ApiKey, latest_version_unstable, request_class, valid_versions
from kraftd.wire.message import Message

Handle = Callable[[Call], Generator[None, None, None] | None]  # a generator, if it may take long
Unread = Callable[[Call], UnreadRefusal | WholeRefusal | None]  # None: the sender may have a right


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


Ask = tuple[AclOperation, AclResourceType]


class Row(NamedTuple):
    """One API in a table of routes; a plain tuple of the first four will do.

    `operation` and `resource_type` are what a request needs: on the cluster itself, the boundary authorizes
    it before the handler (`door`); on single resources, the handler does. Both are None for an API that needs
    nothing. `also` is what the handler may ask besides: the boundary answers no other question. `module` is
    below `kraftd`, and has `handle(node, call)`. It may have `unread(node, call)`, which says how to refuse a
    large request undecoded; `unread` says so for an API whose rule is all that it has.
    """

    key: ApiKey
    operation: AclOperation | None
    resource_type: AclResourceType | None
    module: str | None
    also: tuple[Ask, ...] = ()
    unread: UnreadRow | None = None


class Route:
    """One API of a node: its versions, what may be asked of the authorizer for it, its handler.

    `load` returns the handler at the first request. `asks` are all operations and types of resources, the
    door included. The other columns are those of a Row.
    """

    door: tuple[AclOperation, AclResourceType, str] | None

    def __init__(
        self,
        key: ApiKey,
        operation: AclOperation | None,
        resource_type: AclResourceType | None,
        load: Callable[[], Handle],
        also: Iterable[Ask] = (),
        unread: Callable[[], Unread | None] = lambda: None,
        refusal: Callable[[], UnreadRefusal | None] = lambda: None,
    ) -> None:
        self.key = key
        self.first, self.last = valid_versions(key)
        self.flexible: int = APIS[key][7]
        self.door = None
        asks = set(also)
        if operation is not None and resource_type is not None:
            asks.add((operation, resource_type))
            if resource_type is AclResourceType.CLUSTER:
                self.door = (operation, resource_type, CLUSTER_NAME)
        self.asks = frozenset(asks)
        self._load = load
        self._load_unread = unread
        self._load_refusal = refusal

    @cached_property
    def request(self) -> type[Message]:
        """The class of its requests, loaded on first use."""
        return request_class(self.key)

    @cached_property
    def handle(self) -> Handle:
        """Its handler, loaded on first use."""
        return self._load()

    def hold_back(self, can_take: Callable[[Call], bool]) -> None:
        """Load the handler when `can_take` first returns true; until then no call gets there."""

        def handle(call: Call) -> Generator[None, None, None] | None:
            if not can_take(call):
                return None
            del self.handle
            return self.handle(call)

        self.handle = handle

    @cached_property
    def unread(self) -> Unread | None:
        """How its large requests are refused without decoding them, if that is known."""
        return self._load_unread()

    @cached_property
    def refusal(self) -> UnreadRefusal | None:
        """How its large requests are refused to a sender that may not pass the door, if that is known."""
        return self._load_refusal()

    def __repr__(self) -> str:
        return f"<Route {self.key.name} v{self.first}-{self.last}>"


def handler_of(node: object, module: str) -> Handle:
    """The handler of a module below `kraftd`, bound to the node."""
    # A MethodType is called faster than a partial.
    return MethodType(import_module(f"kraftd.{module}").handle, node)


def unread_of(node: object, module: str) -> Unread | None:
    """The function `unread` of a module below `kraftd`, bound to the node; None if the module has none."""
    found = getattr(import_module(f"kraftd.{module}"), "unread", None)
    return None if found is None else MethodType(found, node)


class Registry:
    """The routes of a node's listeners, by API key, in ascending order.

    Versions that Kafka calls unstable are left out unless `unstable` (`unstable.api.versions.enable`).
    Raises ValueError for two routes of one API.
    """

    def __init__(self, routes: Iterable[Route], *, unstable: bool = False) -> None:
        self.routes: dict[int, Route] = {}
        for route in sorted(routes, key=lambda route: route.key):
            if route.key in self.routes:
                raise ValueError(f"{route.key.name} has two handlers")
            if latest_version_unstable(route.key) and not unstable:
                route = copy(route)
                route.last -= 1
            self.routes[int(route.key)] = route

    def versions(self) -> list[tuple[int, int, int]]:
        """API key, first and last version of each, as ApiVersions lists them."""
        return [(key, route.first, route.last) for key, route in self.routes.items()]

    def __repr__(self) -> str:
        return f"<Registry of {len(self.routes)} APIs>"
