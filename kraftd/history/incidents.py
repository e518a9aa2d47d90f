"""Joins the parts of an event that a controller divided into several batches (the rules: `causes`).

    incidents = Incidents(wanted, in_order=False)
    for events in batches:              # those of each batch, in the order of the log
        show(incidents.add(events))
    show(incidents.end())               # also when no batch has come for a while

A part that waits for its cause is held. For people only the first effects of each kind are held, and the
number of the others. An event of a million partitions thus takes little memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from kraftd.history.causes import (
    FIRST,
    LAST,
    MAX_PAUSE_MS,
    MAX_UNDIVIDED,
    Effects,
    causes_first,
    causes_of,
    explains_event,
    leavers,
    with_causes,
)
from kraftd.history.event import Event

MAX_HELD_PER_KIND = 10


class More(Struct, frozen=True):
    """How many more effects of a kind there were until this offset, after those that are shown."""

    kind: str
    count: int
    offset: int
    timestamp_ms: int


Item = Event | More
Wanted = Callable[[Event], bool]


class _Part:
    """An event of which more may follow: its cause if that came first, else the brokers that may be it."""

    def __init__(self, cause: Event | None, brokers: frozenset[int], most_per_kind: int | None) -> None:
        self.cause, self.brokers = cause, brokers
        self.effects = Effects()
        self.epoch, self.last_ms = -1, 0
        self._most_per_kind = most_per_kind
        self._held: list[Event] = []
        self._counts: Counter[str] = Counter()
        self._last: dict[str, Event] = {}

    def add(self, events: Iterable[Event], wanted: Wanted) -> None:
        for event in events:
            self.epoch, self.last_ms = event.epoch, event.timestamp_ms
            self.effects.add(event)
            if wanted(event):
                self._counts[event.kind] += 1
                if self._most_per_kind is None or self._counts[event.kind] <= self._most_per_kind:
                    self._held.append(event)
                else:
                    self._last[event.kind] = event

    def items(self, cause: Event | None, wanted: Wanted) -> list[Item]:
        """The lines that show the event, its cause first."""
        shown: list[Item] = []
        if cause is not None and wanted(cause):
            shown.append(self.effects.summed_up(cause) if self.effects else cause)
        shown += self._held
        for kind, last in sorted(self._last.items(), key=lambda one: one[1].offset):
            count = self._counts[kind] - (self._most_per_kind or 0)
            shown.append(More(kind, count, last.offset, last.timestamp_ms))
        return shown

    def __repr__(self) -> str:
        return f"<_Part of {self.cause or sorted(self.brokers)}: {self.effects!r}>"


class Incidents:
    """The events of a log, batch by batch; `in_order` keeps the order of offsets, as scripts expect."""

    def __init__(self, wanted: Wanted, *, in_order: bool) -> None:
        self._wanted, self._in_order = wanted, in_order
        self._part: _Part | None = None

    def __repr__(self) -> str:
        return f"<Incidents, open: {self._part!r}>"

    @property
    def is_open(self) -> bool:
        """Return whether something is held that the next batch may complete."""
        return self._part is not None

    def end(self) -> list[Item]:
        """The lines of the held incident, which no later event completes."""
        part, self._part = self._part, None
        if part is None or (self._in_order and part.cause is None):
            return []  # scripts have these events already
        return part.items(part.cause, self._wanted)

    def add(self, events: Sequence[Event]) -> list[Item]:
        """The lines to show once all events of a batch are known."""
        if not events:
            return []
        shown: list[Item] = []
        part = self._part
        if part is not None and (
            events[0].epoch != part.epoch or events[0].timestamp_ms - part.last_ms > MAX_PAUSE_MS
        ):
            shown += self.end()
            part = None
        if part is not None and part.cause is not None:
            events = self._continue_first(part, events, shown)
        elif part is not None:
            events = self._continue_last(part, events, shown)
        return shown + self._rest(events) if events else shown

    def _continue_first(self, part: _Part, events: Sequence[Event], shown: list[Item]) -> Sequence[Event]:
        """Take the effects of a FIRST record from the beginning of a batch; returns the others."""
        cause = part.cause
        assert cause is not None
        length = _length(events, lambda event: explains_event(cause, event))
        part.add(events[:length], self._wanted)
        rest = events[length:]
        same = any(one.meaning.subject == "broker" and one.meaning.name == cause.meaning.name for one in rest)
        if rest and (same or length or self._in_order):
            shown += self.end()
        return rest

    def _continue_last(self, part: _Part, events: Sequence[Event], shown: list[Item]) -> Sequence[Event]:
        """Complete the event by the LAST record of its broker, or take a part of it; returns the others."""
        for at, event in enumerate(events):
            if event.kind in LAST and int(event.meaning.name) in part.brokers:
                places = dict(causes_of(events)).get(at, [])
                self._take(part, [events[place] for place in places], shown)
                self._part = None
                cause = part.items(event, self._wanted) if not self._in_order else []
                before = [one for place, one in enumerate(events[:at]) if place not in set(places)]
                shown += self._plain(before)
                shown += cause
                if self._in_order and self._wanted(event):
                    shown.append(part.effects.summed_up(event))
                return events[at + 1 :]
        length, brokers = 0, part.brokers
        while length < len(events) and (common := brokers & leavers(events[length])):
            length, brokers = length + 1, common
        part.brokers = brokers
        self._take(part, events[:length], shown)
        return events[length:]

    def _take(self, part: _Part, events: Sequence[Event], shown: list[Item]) -> None:
        """Add effects whose cause follows; scripts get them at once."""
        part.add(events, self._wanted)
        if self._in_order:
            shown += [event for event in events if self._wanted(event)]

    def _rest(self, events: Sequence[Event]) -> list[Item]:
        """What is shown of events that complete nothing: the end of them may begin something."""
        end, last = len(events), events[-1]
        at, effects = next((one for one in causes_of(events) if one[1][-1] == end - 1), (end - 1, []))
        if events[at].kind in FIRST and (
            len(effects) > MAX_UNDIVIDED or (not effects and last.kind == "broker-shutting-down")
        ):
            return self._hold(events, at, _Part(events[at], frozenset(), self._most_per_kind))
        start, brokers = end, leavers(last)
        while start and (common := brokers & leavers(events[start - 1])):
            start, brokers = start - 1, common
        if end - start > MAX_UNDIVIDED:
            return self._hold(events, start, _Part(None, brokers, self._most_per_kind))
        return self._plain(events)

    @property
    def _most_per_kind(self) -> int | None:
        return None if self._in_order else MAX_HELD_PER_KIND

    def _hold(self, events: Sequence[Event], start: int, part: _Part) -> list[Item]:
        """Hold the events from there on as the first part of one event; returns what is shown now."""
        shown = [*self.end(), *self._plain(events[:start])]
        self._part = part
        if part.cause is not None:
            part.epoch, part.last_ms = part.cause.epoch, part.cause.timestamp_ms
            part.add(events[start + 1 :], self._wanted)
        else:
            self._take(part, events[start:], shown)
        return shown

    def _plain(self, events: Sequence[Event]) -> list[Item]:
        """The events of a batch that is complete. For people each cause comes before its effects."""
        found = with_causes(events)
        if self._in_order:
            return [event for event in found if self._wanted(event)]
        shown: list[Item] = []
        at = 0
        for place, effects in causes_of(events):
            start, end = min(place, effects[0]), max(place, effects[-1]) + 1
            if start < at or len(effects) <= MAX_UNDIVIDED:
                continue
            part = _Part(None, frozenset(), self._most_per_kind)
            part.add([events[one] for one in effects], self._wanted)
            shown += [event for event in causes_first(found[at:start]) if self._wanted(event)]
            shown += part.items(events[place], self._wanted)
            at = end
        return shown + [event for event in causes_first(found[at:]) if self._wanted(event)]


def _length(events: Sequence[Event], belongs: Callable[[Event], bool]) -> int:
    """The number of first events that belong to something."""
    length = 0
    while length < len(events) and belongs(events[length]):
        length += 1
    return length
