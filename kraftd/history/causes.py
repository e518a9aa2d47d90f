"""Causes and effects: a broker that leaves or returns, and the partitions that it changes.

Controllers append the records of one event without a gap, in as many batches as they need. The broker's
record is the last one if the broker is fenced or unregistered, registers after an unclean shutdown or has
lost directories; it is the first one if the broker is unfenced or shuts down. Only neighbouring records
count, and only changes that the broker explains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kraftd.history.event import Event
from kraftd.history.names import count

LAST = frozenset(("broker-fenced", "broker-unregistered", "broker-registered", "broker-directories-changed"))
FIRST = frozenset(("broker-unfenced", "broker-shutting-down"))

# What is said of the effects of one kind, after their number.
_WORDS = {
    "leader-moved": ("partition moved", "partitions moved"),
    "unclean-election": ("partition elected a leader uncleanly", "partitions elected leaders uncleanly"),
    "isr-shrank": ("ISR shrank", "ISRs shrank"),
    "isr-changed": ("ISR changed", "ISRs changed"),
}


class Placement(NamedTuple):
    """What of a partition's state a broker may explain; leader is -1 for none."""

    leader: int
    isr: Collection[int]
    replicas: Collection[int]


def explains(kind: str, broker: int, before: Placement, after: Placement) -> bool:
    """Return whether a broker's event of this kind explains a neighbouring change of a partition."""
    if kind == "broker-unfenced":
        return before.leader < 0 <= after.leader
    if set(before.replicas) != set(after.replicas):
        return False  # a reassignment: a broker that leaves changes no set of replicas
    left_isr = broker in before.isr and broker not in after.isr
    # The last member of an ISR may stay in it, without leading.
    return left_isr or (before.leader == broker and after.leader < 0)


def with_causes(events: Sequence[Event]) -> list[Event]:
    """The events in the same order; those of causes name the number of their effects."""
    found = list(events)
    for at, its_effects in _causes(events):
        found[at] = _summed_up(events[at], [events[one] for one in its_effects])
    return found


def causes_first(events: Sequence[Event]) -> list[Event]:
    """The events, each cause before its effects."""
    found = list(events)
    for at, its_effects in _causes(events):
        if its_effects[0] < at:
            found[its_effects[0] : at + 1] = [found[at], *found[its_effects[0] : at]]
    return found


def _causes(events: Sequence[Event]) -> Iterator[tuple[int, list[int]]]:
    """The places of the causes that have effects, with the places of these, in order.

    A broker that shuts down has changed all that its fencing could: the first of the two is the cause.
    """
    explained = 0  # the places below are effects of an event before them
    for at, event in enumerate(events):
        if event.meaning.subject != "broker":
            continue
        before_it = range(at - 1, explained - 1, -1)
        places = before_it if event.kind in LAST else range(at + 1, len(events))
        its_effects, offset = [], event.offset
        for place in places if event.kind in LAST | FIRST else ():
            if abs(events[place].offset - offset) != 1 or not _explains(event, events[place]):
                break
            offset = events[place].offset
            its_effects.append(place)
        if its_effects:
            if event.kind in FIRST:
                explained = its_effects[-1] + 1
            yield at, sorted(its_effects)


def _explains(cause: Event, event: Event) -> bool:
    """Return whether a broker's event explains an event of a partition."""
    after, before = event.meaning.details, event.meaning.details.get("before")
    if event.meaning.subject != "partition" or not isinstance(before, dict):
        return False
    states = [Placement(one["leader"], one["isr"], one["replicas"]) for one in (before, after)]
    # The broker may have been an eligible leader replica only.
    return explains(cause.kind, int(cause.meaning.name), *states) or (
        cause.kind != "broker-unfenced" and "elr-changed" in event.kinds
    )


def _summed_up(cause: Event, effects: Sequence[Event]) -> Event:
    kinds = Counter(one.kind for one in effects)
    parts = [
        count(kinds[kind], words[0]) if kinds[kind] == 1 else f"{kinds[kind]:,} {words[1]}"
        for kind, words in _WORDS.items()
        if kinds[kind]
    ]
    for kind, state in (("leader-lost", "offline"), ("leader-elected", "online again")):
        of_topics = {one.meaning.topic for one in effects if one.kind == kind}
        if of_topics:
            parts.append(f"{count(len(of_topics), 'topic')} {state} ({count(kinds[kind], 'partition')})")
    meaning = cause.meaning
    text = f"{meaning.text}: {', '.join(parts)}" if parts else meaning.text
    details = {**meaning.details, "effects": dict(kinds)}
    return replace(cause, meaning=replace(meaning, text=text, details=details))
