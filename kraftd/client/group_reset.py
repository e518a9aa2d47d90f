"""New offsets of a group without members: planned, shown, then committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from kraftd.client.cluster import Cluster
from kraftd.client.group_description import DEAD, EMPTY, SHARE, GroupState
from kraftd.client.group_offsets import Committed, GroupOffsets, Place
from kraftd.client.partition_reader import EARLIEST, LATEST, PartitionReader
from kraftd.client.share_offsets import alter_share_offsets
from kraftd.named_tuple import NamedTuple

NO_EPOCH = -1


class ResetRefused(Exception):
    """The offsets of the group cannot be reset; the text says why."""


class Rule(NamedTuple):
    """Where to: the first record since a time (ms, EARLIEST or LATEST), an offset, or so many further."""

    time_ms: int | None = None
    offset: int | None = None
    shift_count: int | None = None


class Move(NamedTuple):
    """A partition's offset before (None without one) and after.

    `wanted` lies outside of the log if it is not `offset`.
    """

    topic: str
    partition: int
    committed: int | None
    wanted: int
    offset: int


def check_resettable(state: GroupState) -> None:
    """Raises ResetRefused for a group with members."""
    if state.state not in (EMPTY, DEAD):
        raise ResetRefused(
            f"Group {state.group} is {state.state} and has members ({len(state.members)}): stop them first, "
            "because they would commit their own offsets."
        )


def committed_offsets(state: GroupState) -> dict[Place, int]:
    """The committed offsets of a described group."""
    return {
        (one.topic, one.partition): one.committed for one in state.partitions if one.committed is not None
    }


async def plan_reset(
    cluster: Cluster, committed: Mapping[Place, int], wanted: Mapping[Place, Rule]
) -> list[Move]:
    """The moves that rules lead to, each within its log. Raises ResetRefused and ClientFailure."""
    without = [
        place for place, rule in wanted.items() if rule.shift_count is not None and place not in committed
    ]
    if without:
        topic, index = without[0]
        raise ResetRefused(f"{topic}-{index} has no committed offset that could be shifted.")
    moves = (_move(cluster, place, committed.get(place), rule) for place, rule in sorted(wanted.items()))
    return list(await asyncio.gather(*moves))


async def _move(cluster: Cluster, place: Place, committed: int | None, rule: Rule) -> Move:
    reader = PartitionReader(cluster, *place)
    start, end = [(await reader.list_offset(time_ms)).offset for time_ms in (EARLIEST, LATEST)]
    if rule.time_ms is not None:
        found = (await reader.list_offset(rule.time_ms)).offset
        wanted = end if found < 0 else found
    elif rule.offset is not None:
        wanted = rule.offset
    else:
        wanted = (committed or 0) + (rule.shift_count or 0)
    return Move(*place, committed, wanted, min(max(wanted, start), end))


async def commit_moves(cluster: Cluster, state: GroupState, moves: Iterable[Move]) -> None:
    """Commit the offsets of planned moves; a share group will begin there.

    Raises Refused, as if a member has joined, and Unreachable.
    """
    offsets = GroupOffsets(cluster, state.group)
    if state.kind == SHARE:
        await alter_share_offsets(offsets, {(one.topic, one.partition): one.offset for one in moves})
    else:
        await offsets.commit({(one.topic, one.partition): Committed(one.offset, NO_EPOCH) for one in moves})
