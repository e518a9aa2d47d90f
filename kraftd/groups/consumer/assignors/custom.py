"""An assignor from outside: called as Kafka's two are, and what it returns is checked."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from kraftd.groups.consumer.assignors.spec import (
    PARTITIONS_A_SLICE,
    Assigned,
    AssignorFailed,
    GroupSpec,
    Slices,
    Uuid,
)

CustomAssignor = Callable[[GroupSpec], Any]  # Assigned, or slices of it
OnFailure = Callable[[Exception], None]


class Custom:
    """An assignor with `function` as its rule; `on_failure` gets its exceptions.

    The function returns the partitions of members, or is a generator that yields between slices.
    """

    def __init__(self, name: str, function: CustomAssignor, on_failure: OnFailure) -> None:
        self._name = name
        self._function = function
        self._on_failure = on_failure

    def __repr__(self) -> str:
        return f"<Custom {self._name}: {self._function!r}>"

    def __call__(self, group: GroupSpec) -> Slices[Assigned]:
        """The partitions of each member. Raises AssignorFailed."""
        try:
            returned = self._function(group)
            if isinstance(returned, Generator):
                returned = yield from returned
            return (yield from checked(group, returned))
        except Exception as error:
            self._on_failure(error)
            text = str(error) if isinstance(error, AssignorFailed) else type(error).__name__
            raise AssignorFailed(f"assignor {self._name}: {text}") from error


def checked(group: GroupSpec, returned: Mapping[str, Mapping[Uuid, AbstractSet[int]]]) -> Slices[Assigned]:
    """What was returned, with sets of its own. Raises AssignorFailed if it cannot be: a member or a partition
    that is not there, a topic to which the member is not subscribed, a partition of two members.
    """
    assigned: Assigned = {}
    owners: dict[tuple[Uuid, int], str] = {}
    looked_at = 0
    for member_id, topics in returned.items():
        member = group.members.get(member_id)
        if member is None:
            raise AssignorFailed(f"there is no member {member_id}")
        subscribed = set(member.topic_ids)
        for topic_id, indexes in topics.items():
            if topic_id not in subscribed:
                raise AssignorFailed(f"member {member_id} is not subscribed to topic {topic_id.hex()}")
            for index in indexes:
                if not 0 <= index < group.partition_counts[topic_id]:
                    raise AssignorFailed(f"topic {topic_id.hex()} has no partition {index}")
                owner = owners.setdefault((topic_id, index), member_id)
                if owner != member_id:
                    where = f"partition {index} of topic {topic_id.hex()}"
                    raise AssignorFailed(f"{where} has two members, {owner} and {member_id}")
            looked_at += len(indexes)
            if looked_at >= PARTITIONS_A_SLICE:
                looked_at = 0
                yield
        assigned[member_id] = {topic_id: set(indexes) for topic_id, indexes in topics.items() if indexes}
    return assigned
