"""ListGroups, in slices: there may be very many groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.groups.state import ShardState
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListedGroup

ASKED_US = 10  # of work: a question of the authorizer


def listed_groups(
    shards: Iterable[ShardState], request: ListGroupsRequest, may: Callable[[str], bool] | None = None
) -> Slices[list[ListedGroup]]:
    """The groups, as of the high watermark, of the states and types that are asked for (KIP-518, KIP-848);
    of these, those that `may` accepts by their ids.

    Filters ignore case; one that names no state or type matches nothing.
    """
    states = {name.lower().strip() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    rows: list[ListedGroup] = []
    pace = Pace()
    for state in shards:
        for _, group in list(state.timeline.committed_items(state.groups)):
            if pace.spent(ROW_US if may is None else ASKED_US):
                yield
            if (
                (not states or group.state_name().lower() in states)
                and (not types or group.type.value in types)
                and (may is None or may(group.group_id))
            ):
                rows.append(group.listed())
    return rows
