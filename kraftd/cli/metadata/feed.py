"""Events as lines: with time and offset for people, as JSON for scripts; many of one kind become one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kraftd.cli.tables import print_lines
from kraftd.types import time_text

if TYPE_CHECKING:
    from kraftd.history.event import Event
    from kraftd.history.incidents import Item, More

MAX_SHOWN_PER_KIND = 10  # of one kind in a row, before the rest is summed up

Wanted = Callable[["Event"], bool]


def line_of(event: Event) -> str:
    """`2026-11-22 06:51:05.123Z       4711  orders-0: leader moved from broker 1 to broker 2 ...`."""
    return f"{time_text(event.timestamp_ms)} {event.offset:>10}  {event.text}"


def lines_of(items: Iterable[Item]) -> Iterator[str]:
    """The lines of a batch's events: after ten partitions with the same kind of event, only their number."""
    from kraftd.history.incidents import More

    kind, run, last = "", 0, None
    for item in items:
        if isinstance(item, More):
            yield from [] if last is None else [last]
            kind, run, last = "", 0, None
            yield more_line(item)
            continue
        run = run + 1 if item.kind == kind and item.meaning.partition is not None else 1
        if run == 1 and last is not None:
            yield last
        kind = item.kind
        if run <= MAX_SHOWN_PER_KIND:
            last = None
            yield line_of(item)
        else:
            last = more_line(More(kind, run - MAX_SHOWN_PER_KIND, item.offset, item.timestamp_ms))
    if last is not None:
        yield last


def more_line(more: More) -> str:
    """The line for effects of which only the number is shown."""
    what = f"and {more.count:,} more partitions: {more.kind} (--json shows all)"
    return f"{time_text(more.timestamp_ms)} {more.offset:>10}  {what}"


def echo(items: Iterable[Item], as_json: bool) -> None:
    """Print the events of a batch at once: a feed is read as it comes."""
    if as_json:
        import msgspec

        from kraftd.history.event import Event

        # Scripts get every event, and so no number of others.
        print_lines(msgspec.json.encode(item.row()).decode() for item in items if isinstance(item, Event))
    else:
        print_lines(lines_of(items))


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
