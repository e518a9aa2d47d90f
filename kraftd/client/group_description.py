"""One group from outside: its kind, who is in it, what it has committed, and how far behind it is."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import chain

from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, NoLeader, Refused, Unreachable
from kraftd.client.group_member import PROTOCOL_TYPE, decode_assignment
from kraftd.client.group_offsets import GroupOffsets, Place, places_of
from kraftd.client.group_waits import ends_by_itself, waits_of_classic, waits_of_consumer
from kraftd.client.partition_reader import LATEST, PartitionReader
from kraftd.client.share_offsets import fetch_share_offsets
from kraftd.configdef.resources import GROUP_RESOURCE
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_configs_response import DescribeConfigsResponse
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_groups_response import DescribeGroupsResponse
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_describe_response import ShareGroupDescribeResponse
from kraftd.named_tuple import NamedTuple
from kraftd.types import address_text
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError

SESSION_KEY = "consumer.session.timeout.ms"
DEAD, EMPTY = "Dead", "Empty"
CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
# So a coordinator answers for a group of another kind, or where groups of this kind are not enabled.
_ANOTHER_KIND = frozenset((ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION))


class Member(NamedTuple):
    """A member of a group and the partitions that are assigned to it."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Place, ...]


class GroupPartition(NamedTuple):
    """A partition of a group, and a member that reads it.

    `committed` is None without an offset, `log_end` None without a leader. Several members of a share group
    may read a partition; its offset is the one before which all records are done. `known_lag` is what its
    coordinator says: later records may be done, too.
    """

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    member: Member | None
    known_lag: int | None = None

    @property
    def lag(self) -> int | None:
        if self.known_lag is not None:
            return self.known_lag
        if self.committed is None or self.log_end is None:
            return None
        return max(0, self.log_end - max(0, self.committed))  # there are no records before offset 0


class GroupState(NamedTuple):
    """A group; `coordinator` is an address, `protocol` the assignor. waits_for: what its rebalance lacks.
    wait_ends: when a wait for members is over, if they do nothing; empty without one. missing: why the ends
    of logs are not known.
    """

    group: str
    kind: str
    state: str
    protocol: str
    coordinator: str
    members: tuple[Member, ...]
    partitions: tuple[GroupPartition, ...]
    waits_for: tuple[str, ...] = ()
    wait_ends: str = ""
    missing: tuple[str, ...] = ()

    @property
    def lag(self) -> int | None:
        """The sum of the known lags; None if offsets are committed, and not one of their lags is known."""
        lags = {(one.topic, one.partition): one.lag for one in self.partitions}
        known = [lag for lag in lags.values() if lag is not None]
        if not known and any(one.committed is not None for one in self.partitions):
            return None
        return sum(known)


class _Described(NamedTuple):
    """What a coordinator tells of a group."""

    kind: str
    state: str
    protocol: str
    members: tuple[Member, ...]
    waits_for: tuple[str, ...] = ()
    wait_ends: str = ""


async def describe_group(cluster: Cluster, group: str) -> GroupState:
    """The group; its state is "Dead" if there is none. Raises Refused, Unreachable."""
    offsets = GroupOffsets(cluster, group)

    async def attempt(connection: Connection) -> tuple[int, _Described]:
        for key, describe in _DESCRIBERS:
            if connection.serves(key):
                code, found = await describe(connection, group)
                if code not in _ANOTHER_KIND:
                    return code, found
        return await _classic(connection, group)

    described = await offsets.coordinator.ask(attempt)
    lags: dict[Place, int | None] = {}
    if described.kind == SHARE:
        progress = await fetch_share_offsets(offsets)
        committed = {place: one.start_offset for place, one in progress.items()}
        lags = {place: one.lag for place, one in progress.items()}
    else:
        committed = await offsets.fetch_all()
    owners = defaultdict(list)
    for member in described.members:
        for place in member.partitions:
            owners[place].append(member)
    places = sorted(committed.keys() | owners.keys())
    ends = await asyncio.gather(*(_log_end(cluster, place) for place in places))
    connection = await offsets.coordinator.connection()
    return GroupState(
        group,
        described.kind,
        described.state,
        described.protocol,
        address_text((connection.host, connection.port)),
        described.members,
        tuple(
            GroupPartition(
                *place, committed.get(place), end if isinstance(end, int) else None, owner, lags.get(place)
            )
            for place, end in zip(places, ends, strict=True)
            for owner in owners.get(place, [None])
        ),
        described.waits_for,
        described.wait_ends,
        tuple(str(end) for end in ends if not isinstance(end, int)),
    )


async def _consumer(connection: Connection, group: str) -> tuple[int, _Described]:
    answer = await connection.ask(ConsumerGroupDescribeRequest((group,)), ConsumerGroupDescribeResponse)
    found = answer.groups[0]
    members = tuple(
        Member(one.member_id, one.instance_id, one.client_id, one.client_host, places_of(one.assignment))
        for one in found.members
    )
    waits_for = tuple(waits_of_consumer(found))
    wait_ends = ends_by_itself(await _session_ms(connection, group)) if waits_for else ""
    described = _Described(CONSUMER, found.group_state, found.assignor_name, members, waits_for, wait_ends)
    return found.error_code, described


async def _session_ms(connection: Connection, group: str) -> int | None:
    """The session timeout of a group's members; None if the broker does not tell it."""
    wanted = DescribeConfigsResource(GROUP_RESOURCE, group, (SESSION_KEY,))
    answer = await connection.ask(DescribeConfigsRequest([wanted]), DescribeConfigsResponse)
    values = [one.value for result in answer.results for one in result.configs if one.name == SESSION_KEY]
    return int(values[0]) if values and values[0] else None


async def _share(connection: Connection, group: str) -> tuple[int, _Described]:
    answer = await connection.ask(ShareGroupDescribeRequest((group,)), ShareGroupDescribeResponse)
    found = answer.groups[0]
    members = tuple(
        Member(one.member_id, None, one.client_id, one.client_host, places_of(one.assignment))
        for one in found.members
    )
    return found.error_code, _Described(SHARE, found.group_state, found.assignor_name, members)


async def _classic(connection: Connection, group: str) -> tuple[int, _Described]:
    # The latest version has an error for a group that does not exist.
    answer = await connection.ask(DescribeGroupsRequest((group,)), DescribeGroupsResponse, max_version=5)
    found = answer.groups[0]
    of_consumers = found.protocol_type == PROTOCOL_TYPE
    members = tuple(
        Member(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            assigned_places(one.member_assignment) if of_consumers else (),
        )
        for one in found.members
    )
    state = found.group_state
    described = _Described(CLASSIC, state, found.protocol_data, members, waits_of_classic(state))
    return found.error_code, described


_DESCRIBERS: tuple[tuple[ApiKey, Callable[[Connection, str], Awaitable[tuple[int, _Described]]]], ...] = (
    (ApiKey.CONSUMER_GROUP_DESCRIBE, _consumer),
    (ApiKey.SHARE_GROUP_DESCRIBE, _share),
)


async def _log_end(cluster: Cluster, place: Place) -> int | ClientFailure:
    """The end of a partition's log; why it is not known, for one that has no leader, or is gone."""
    try:
        found = await PartitionReader(cluster, *place).list_offset(LATEST)
    except (NoLeader, Refused, Unreachable) as failure:
        return failure
    return int(found.offset)


def assigned_places(assignment: bytes) -> tuple[Place, ...]:
    """The partitions of a member; none if its bytes, which no broker checks, are no assignment."""
    try:
        topics = decode_assignment(assignment).items()
    except ProtocolError:
        return ()
    return tuple(chain.from_iterable(((topic, index) for index in indexes) for topic, indexes in topics))
