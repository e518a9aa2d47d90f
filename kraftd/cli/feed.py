"""Events as lines: with time and offset for people, as JSON for scripts; many of one kind become one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kraftd.cli.tables import print_lines
from kraftd.cli.times import time_text

if TYPE_CHECKING:
    from kraftd.history.event import Event

MAX_SHOWN_PER_KIND = 10  # of one kind in a row, before the rest is summed up

Wanted = Callable[["Event"], bool]


def line_of(event: Event) -> str:
    """`2026-11-22 06:51:05.123Z       4711  orders-0: leader moved from broker 1 to broker 2 ...`."""
    return f"{time_text(event.timestamp_ms)} {event.offset:>10}  {event.text}"


def lines_of(events: Iterable[Event]) -> Iterator[str]:
    """The lines of a batch's events: after ten partitions with the same kind of event, only their number."""
    kind, run, last = "", 0, None
    for event in events:
        run = run + 1 if event.kind == kind and event.meaning.partition is not None else 1
        if run == 1 and last is not None:
            yield last
        kind = event.kind
        if run <= MAX_SHOWN_PER_KIND:
            last = None
            yield line_of(event)
        else:
            more = run - MAX_SHOWN_PER_KIND
            what = f"and {more:,} more partitions: {kind} (--json shows all)"
            last = f"{time_text(event.timestamp_ms)} {event.offset:>10}  {what}"
    if last is not None:
        yield last


def echo_events(events: Iterable[Event], as_json: bool) -> None:
    """Print the events of a batch at once: a feed is read as it comes.

    For people a cause comes before its effects; JSON is in the order of offsets.
    """
    if as_json:
        import msgspec

        print_lines(msgspec.json.encode(event.row()).decode() for event in events)
    else:
        from kraftd.history.causes import causes_first

        print_lines(lines_of(causes_first(list(events))))


def wants(topic: str | None, partition: int | None, kinds: tuple[str, ...] = ()) -> Wanted:
    """A filter for the events that a command's options select."""

    def wanted(event: Event) -> bool:
        meaning = event.meaning
        return (
            (topic is None or meaning.topic == topic)
            and (partition is None or meaning.partition in (None, partition))
            and (not kinds or not set(kinds).isdisjoint(event.kinds))
        )

    return wanted
