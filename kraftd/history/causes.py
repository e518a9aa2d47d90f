"""Causes and effects: a broker that leaves or returns, and the partitions that it changes.

The broker's record is the last one if the broker is fenced or unregistered, registers after an unclean
shutdown, or has lost directories (LAST). It is the first one if the broker is unfenced or shuts down (FIRST).
Only neighbouring records count, and only changes that the broker explains.

Controllers append the records of one event without a gap, in as many batches as they need: Kafka 10,000
records at once. kraftd lets a broker leave a few hundred partitions at once, between other decisions. As a
log is read, the parts are joined (`kraftd.history.incidents`) by these rules:

1. All parts have one epoch, and at most MAX_PAUSE_MS pass from one part to the next.
2. A part after a FIRST record is what its broker explains at the beginning of a batch. The batch before must
   end with the record, or with more than MAX_UNDIVIDED of its effects.
3. A part before a LAST record is the end of a batch: more than MAX_UNDIVIDED changes that take partitions
   from one broker (`leavers`). The LAST record is the next one of that broker.
4. A change belongs to the FIRST record before it rather than to a LAST record after it: a broker that shuts
   down is fenced in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from kraftd.history.event import Event
from kraftd.history.names import count
from kraftd.named_tuple import NamedTuple

MAX_PAUSE_MS = 2_000  # between the timestamps of two parts of an event
MAX_UNDIVIDED = 100  # changes; no controller divides an event with fewer

LAST = frozenset(("broker-fenced", "broker-unregistered", "broker-registered", "broker-directories-changed"))
FIRST = frozenset(("broker-unfenced", "broker-shutting-down"))

# The words after the number of effects of one kind.
_WORDS = {
    "leader-moved": ("partition moved", "partitions moved"),
    "unclean-election": ("partition elected a leader uncleanly", "partitions elected leaders uncleanly"),
    "isr-shrank": ("ISR shrank", "ISRs shrank"),
    "isr-changed": ("ISR changed", "ISRs changed"),
}
_ONLINE = {"leader-lost": "offline", "leader-elected": "online again"}


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


class Effects:
    """The number of effects by kind, and the topics that went offline or came back."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.kinds: Counter[str] = Counter()
        self._topics: dict[str, set[str | None]] = {kind: set() for kind in _ONLINE}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        self.kinds[event.kind] += 1
        if event.kind in self._topics:
            self._topics[event.kind].add(event.meaning.topic)

    def __len__(self) -> int:
        return self.kinds.total()

    def __repr__(self) -> str:
        return f"<Effects {dict(self.kinds)}>"

    def summed_up(self, cause: Event) -> Event:
        """The cause, whose sentence and details name the number of its effects."""
        kinds = self.kinds
        parts = [
            count(kinds[kind], words[0]) if kinds[kind] == 1 else f"{kinds[kind]:,} {words[1]}"
            for kind, words in _WORDS.items()
            if kinds[kind]
        ]
        for kind, state in _ONLINE.items():
            of_topics = self._topics[kind]
            if of_topics:
                parts.append(f"{count(len(of_topics), 'topic')} {state} ({count(kinds[kind], 'partition')})")
        meaning = cause.meaning
        text = f"{meaning.text}: {', '.join(parts)}" if parts else meaning.text
        details = {**meaning.details, "effects": dict(kinds)}
        return replace(cause, meaning=replace(meaning, text=text, details=details))


def with_causes(events: Sequence[Event]) -> list[Event]:
    """The events in the same order; those of causes name the number of their effects."""
    found = list(events)
    for at, its_effects in causes_of(events):
        found[at] = Effects(events[one] for one in its_effects).summed_up(events[at])
    return found


def causes_first(events: Sequence[Event]) -> list[Event]:
    """The events, each cause before its effects."""
    found = list(events)
    for at, its_effects in causes_of(events):
        if its_effects[0] < at:
            found[its_effects[0] : at + 1] = [found[at], *found[its_effects[0] : at]]
    return found


def causes_of(events: Sequence[Event]) -> Iterator[tuple[int, list[int]]]:
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
            if abs(events[place].offset - offset) != 1 or not explains_event(event, events[place]):
                break
            offset = events[place].offset
            its_effects.append(place)
        if its_effects:
            if event.kind in FIRST:
                explained = its_effects[-1] + 1
            yield at, sorted(its_effects)


def explains_event(cause: Event, event: Event) -> bool:
    """Return whether a broker's event explains an event of a partition."""
    states = _placements(event)
    if states is None:
        return False
    # The broker may have been an eligible leader replica only.
    return explains(cause.kind, int(cause.meaning.name), *states) or (
        cause.kind != "broker-unfenced" and "elr-changed" in event.kinds
    )


def leavers(event: Event) -> frozenset[int]:
    """The brokers whose departure explains an event of a partition."""
    states = _placements(event)
    if states is None:
        return frozenset()
    before = states[0]
    members = {*before.isr, before.leader} - {-1}
    return frozenset(one for one in members if explains("broker-fenced", one, *states))


def _placements(event: Event) -> tuple[Placement, Placement] | None:
    """A partition's state before and after an event that changed it."""
    after, before = event.meaning.details, event.meaning.details.get("before")
    if event.meaning.subject != "partition" or not isinstance(before, dict):
        return None
    first, second = (Placement(one["leader"], one["isr"], one["replicas"]) for one in (before, after))
    return first, second
