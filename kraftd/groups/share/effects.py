"""What the broker does for share groups, besides `kraftd.groups.effects`, and what it reports of that."""

from __future__ import annotations

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

Place = tuple[str, int]  # a topic's name and a partition


class AskShareCoordinators(Effect, frozen=True):
    """Ask the share coordinators of all partitions of a request; ShareCoordinatorsAnswered comes back."""

    number: int
    request: Message


class ShareCoordinatorsAnswered(Event, frozen=True):
    """The answer to an AskShareCoordinators: a result, which may be an error, of each partition."""

    number: int
    response: Message


class FindLatestOffsets(Effect, frozen=True):
    """Ask the leaders of partitions for the offsets of their next records; LatestOffsetsFound comes back."""

    number: int
    places: list[Place]


class LatestOffsetsFound(Event, frozen=True):
    """The answer to a FindLatestOffsets: of each partition its high watermark, or why there is none."""

    number: int
    offsets: dict[Place, int | ErrorCode]
