"""What a rebalance of a group waits for, from what its coordinator tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kraftd.client.group_offsets import Place, places_of
from kraftd.client.open_transactions import duration_text
from kraftd.messages.consumer_group_describe_response import DescribedGroup, Member

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
MAX_PLACES = 5  # that are named
_REBALANCE_TIMEOUT = "after its rebalance timeout, which is max.poll.interval.ms of a consumer"
_OF_CLASSIC = {
    PREPARING: f"its members to join again; one that does not is removed {_REBALANCE_TIMEOUT}",
    COMPLETING: "the assignment that one of its members, the leader, computes and sends; members that do not "
    "ask for theirs are removed after their rebalance timeout",
}


def waits_of_classic(state: str) -> tuple[str, ...]:
    """DescribeGroups does not tell which members have joined again."""
    return (_OF_CLASSIC[state],) if state in _OF_CLASSIC else ()


def waits_of_consumer(group: DescribedGroup) -> Iterator[str]:
    """A member keeps what another is to get, or does not know yet what it is to have."""
    if group.assignment_epoch < group.group_epoch:
        by = f", which assignor {group.assignor_name} is to compute" if group.assignor_name else ""
        last = f"the last one is of epoch {group.assignment_epoch}"
        yield f"the target of epoch {group.group_epoch}{by}; {last}"
    heirs: dict[Place, list[Member]] = defaultdict(list)
    held = {place for one in group.members for place in places_of(one.assignment)}
    for member in group.members:
        for place in {*places_of(member.target_assignment)} - {*places_of(member.assignment)}:
            heirs[place].append(member)
    for member in group.members:
        has, target = {*places_of(member.assignment)}, {*places_of(member.target_assignment)}
        kept = has - target
        if kept:
            names = sorted({_name(heir) for place in kept for heir in heirs[place]})
            then = (
                f", which {' and '.join(names)} {'is' if len(names) == 1 else 'are'} to get" if names else ""
            )
            yield f"{_name(member)} to give up {_shown(kept)}{then}"
        elif free := target - held:
            yield f"{_name(member)} to take {_shown(free)} with its next heartbeat"
        elif member.member_epoch < group.assignment_epoch and has == target:
            yield f"{_name(member)} of epoch {member.member_epoch} to hear of epoch {group.assignment_epoch}"


def ends_by_itself(session_ms: int | None) -> str:
    """When the wait for a member of the consumer protocol is over. session_ms is None if it is not known.

    Coordinators tell neither when a member's last heartbeat came, nor its rebalance timeout.
    """
    within = "its session timeout" if session_ms is None else duration_text(session_ms)
    return (
        f"A member is removed if it is silent for {within}, or still keeps partitions {_REBALANCE_TIMEOUT}."
    )


def _name(member: Member) -> str:
    return f"{member.client_id} ({member.member_id})"


def _shown(places: Iterable[Place]) -> str:
    names = [f"{topic}-{index}" for topic, index in sorted(places)]
    more = len(names) - MAX_PLACES
    return ", ".join(names[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")
