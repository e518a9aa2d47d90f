"""The base of events: facts that have already happened, in the past participle."""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, frozen=True, gc=False):
    """The base of all events."""


class DeadlineReached(Event, frozen=True, gc=False):
    """The time `deadline_ms()` is reached. Any other event at or after it does the same work."""
