"""What the broker does for share groups, besides `kraftd.groups.effects`, and what it reports of that."""

from __future__ import annotations

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.wire.message import Message


class AskShareCoordinators(Effect, frozen=True):
    """Ask the share coordinators of all partitions of a request; ShareCoordinatorsAnswered comes back."""

    number: int
    request: Message


class ShareCoordinatorsAnswered(Event, frozen=True):
    """The answer to an AskShareCoordinators: a result, which may be an error, of each partition."""

    number: int
    response: Message
