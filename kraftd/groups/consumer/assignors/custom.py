"""An assignor from outside: called as Kafka's two are, and what it returns is checked."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from operator import index as as_index
from typing import Any

from kraftd.groups.consumer.assignors.spec import (
    PARTITIONS_A_SLICE,
    Assigned,
    Assignor,
    AssignorFailed,
    GroupSpec,
    Slices,
    Uuid,
    Waits,
)

CustomAssignor = Callable[[GroupSpec], Any]  # Assigned, or slices of it
OnFailure = Callable[[str, AssignorFailed], None]


class Custom:
    """An assignor that may take long, fail, or return what cannot be.

    run: computes the partitions of each member, and yields meanwhile. on_failure gets the group's id and the
    fault.
    """

    def __init__(self, name: str, run: Assignor, on_failure: OnFailure) -> None:
        self._name = name
        self._run = run
        self._on_failure = on_failure

    def __repr__(self) -> str:
        return f"<Custom {self._name}: {self._run!r}>"

    def __call__(self, group: GroupSpec) -> Waits[Assigned]:
        """The partitions of each member. Raises AssignorFailed."""
        try:
            return (yield from self._run(group))
        except Exception as error:
            failure = error if isinstance(error, AssignorFailed) else AssignorFailed(repr(error))
            self._on_failure(group.group_id, failure)
            raise failure from error


def called(function: CustomAssignor, group: GroupSpec) -> Waits[Assigned]:
    """What a function returns for a group, checked; a function that is a generator yields between slices.

    Raises AssignorFailed, and what the function raises.
    """
    returned = function(group)
    if isinstance(returned, Generator):
        returned = yield from returned
    return (yield from checked(group, returned))


def checked(group: GroupSpec, returned: Mapping[str, Mapping[Uuid, AbstractSet[int]]]) -> Slices[Assigned]:
    """What was returned, with sets of its own. Raises AssignorFailed if it cannot be: a member or a partition
    that is not there, a topic to which the member is not subscribed, a partition of two members.
    """
    if not isinstance(returned, Mapping):
        raise AssignorFailed(f"it returned no partitions by member, but {type(returned).__name__}")
    assigned: Assigned = {}
    subscribed: dict[int, AbstractSet[Uuid]] = {}  # members share their topics
    owners: dict[tuple[Uuid, int], str] = {}
    looked_at = 0
    for member_id, topics in returned.items():
        member = group.members.get(member_id)
        if member is None:
            raise AssignorFailed(f"there is no member {member_id}")
        of_member = subscribed.get(id(member.topic_ids))
        if of_member is None:
            of_member = subscribed[id(member.topic_ids)] = set(member.topic_ids)
        own: dict[Uuid, AbstractSet[int]] = {}
        assigned[member_id] = own
        for topic_id, indexes in topics.items():
            if topic_id not in of_member:
                text = topic_id.hex() if isinstance(topic_id, bytes) else repr(topic_id)
                raise AssignorFailed(f"member {member_id} is not subscribed to topic {text}")
            numbers = {int(as_index(index)) for index in indexes}
            for index in numbers:
                if not 0 <= index < group.partition_counts[topic_id]:
                    raise AssignorFailed(f"topic {topic_id.hex()} has no partition {index}")
                owner = owners.setdefault((topic_id, index), member_id)
                if owner != member_id:
                    where = f"partition {index} of topic {topic_id.hex()}"
                    raise AssignorFailed(f"{where} has two members, {owner} and {member_id}")
            if numbers:
                own[topic_id] = numbers
            looked_at += len(numbers)
            if looked_at >= PARTITIONS_A_SLICE:
                looked_at = 0
                yield
    return assigned
