"""ListGroups in one shard."""

from __future__ import annotations

from kraftd.groups.state import ShardState
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListedGroup


def listed_groups(state: ShardState, request: ListGroupsRequest) -> list[ListedGroup]:
    """The groups, as of the high watermark, of the states and types that are asked for (KIP-518, KIP-848).

    Filters ignore case; one that names no state or type matches nothing.
    """
    states = {name.lower().strip() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    return [
        group.listed()
        for _, group in state.timeline.committed_items(state.groups)
        if (not states or group.state_name().lower() in states) and (not types or group.type.value in types)
    ]
