"""Events of the controller node, in addition to those of the consensus core, which are passed to it
unchanged.
"""

from __future__ import annotations

from kraftd.ground.event import Event


class DiskFilled(Event, frozen=True):
    """The disk is full: nothing more is appended until DiskHasRoom."""

    text: str


class DiskHasRoom(Event, frozen=True):
    """The records that did not fit on the disk are written now."""


class FlushDue(Event, frozen=True):
    """Everything that was ready at the time of ScheduleFlush has been handled. Answers ScheduleFlush."""
