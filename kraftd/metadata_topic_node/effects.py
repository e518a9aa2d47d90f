"""Effects and events of a client node, in addition to those of any node that serves requests."""

from __future__ import annotations

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.requests.call import Call


class LookUpTimes(Effect, frozen=True):
    """Look for the first record at or after each time below `end_offset`; TimesLookedUp comes back.

    A time of None asks for the record with the largest timestamp.
    """

    call: Call
    times_ms: list[int | None]
    end_offset: int


class TimesLookedUp(Event, frozen=True):
    """Timestamp and offset of each requested record; None if there is none."""

    call: Call
    found: list[tuple[int, int] | None]
