"""Plots over time as SVG, to be embedded in a page, whose colours of text and lines they take.

The axis of time covers the whole log. Each line has a panel of its own and bars are stacked, so nothing hides
behind anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any

Rows = Sequence[dict[str, Any]]

WIDTH, LEFT, RIGHT = 960, 56, 44
HEIGHT, PANEL_HEIGHT, TOP, BOTTOM = 190, 84, 16, 40
MOST_TICKS = 8
SECOND_MS, DAY_MS = 1_000, 86_400_000
STEPS_MS = [
    SECOND_MS * seconds
    for seconds in (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800)
] + [DAY_MS * days for days in (7, 14, 28, 91, 182, 364, 728, 1820, 3640, 36_400)]

WORDS = {
    "under_min_isr": "under min.insync.replicas",
    "under_replicated": "under-replicated",
    "isr_shrinks": "ISR shrinks",
    "isr_expands": "ISR expands",
}


def time_text(ms: int) -> str:
    """A time in UTC, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True)
class TimeAxis:
    """The time from the first to the last record."""

    first_ms: int
    last_ms: int

    def x(self, ms: int) -> float:
        """The place of a time."""
        whole = max(self.last_ms - self.first_ms, 1)
        return (
            LEFT
            + (WIDTH - LEFT - RIGHT) * (min(max(ms, self.first_ms), self.last_ms) - self.first_ms) / whole
        )

    def ticks(self) -> list[tuple[float, str]]:
        """Round times within the axis: at most MOST_TICKS + 1, with their texts; midnight has its date."""
        whole = self.last_ms - self.first_ms
        step = next((step for step in STEPS_MS if whole <= step * MOST_TICKS), STEPS_MS[-1])
        clock = "%H:%M" if step >= 60 * SECOND_MS else "%H:%M:%S"
        first = -(-self.first_ms // step) * step
        return [
            (
                self.x(ms),
                datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d" if ms % DAY_MS == 0 else clock),
            )
            for ms in range(first, self.last_ms + 1, step)
        ]

    def draw(self, y: float) -> list[str]:
        """The axis at a height, with round times, and the first and the last time below them."""
        parts = [_line(LEFT, y, WIDTH - RIGHT, y)]
        for x, text in self.ticks():
            parts += [_line(x, y, x, y + 4), _text(x, y + 15, text, "middle")]
        ends = ((LEFT, self.first_ms, "start"), (WIDTH - RIGHT, self.last_ms, "end"))
        parts += [_text(x, y + 31, f"{time_text(ms)} UTC", anchor) for x, ms, anchor in ends]
        return parts


def steps(rows: Rows, value: str, axis: TimeAxis, colors: Mapping[str, str], by: str | None = None) -> str:
    """A panel for each value of the column `by`, in the order of colors: a value holds until the next row."""
    groups = _grouped(rows, by, colors)
    parts: list[str] = []
    y = 0.0
    for name, of_it in groups.items():
        most = max(row[value] for row in of_it)
        top = _round_top(most)
        floor = y + TOP + PANEL_HEIGHT
        points = [(axis.x(axis.first_ms), 0), *((axis.x(row["at_ms"]), row[value]) for row in of_it)]
        points.append((axis.x(axis.last_ms), of_it[-1][value]))
        path = f"M{points[0][0]:.1f} {floor:.1f}"
        for (_, before), (x, count) in pairwise(points):
            path += f"H{x:.1f}" + ("" if count == before else f"V{floor - PANEL_HEIGHT * count / top:.1f}")
        parts += _scale(y + TOP, PANEL_HEIGHT, top)
        color = f"fill='{colors[name]}' fill-opacity='.35' stroke='{colors[name]}'"
        parts.append(f"<path d='{path}V{floor:.1f}Z' {color}/>")
        if by is not None:
            parts.append(_text(LEFT, y + TOP - 5, f"{words(name)}, at most {most:,}", "start"))
        y = floor + 10
    return _svg(y + BOTTOM, [*parts, *axis.draw(y - 10)])


def bars(rows: Rows, value: str, axis: TimeAxis, width_ms: int, colors: Mapping[str, str], by: str) -> str:
    """The counts of each part of time, stacked by the column `by`, with a legend that has the totals."""
    groups = _grouped(rows, by, colors)
    totals: dict[int, int] = {}
    for row in rows:
        totals[row["at_ms"]] = totals.get(row["at_ms"], 0) + row[value]
    top, floor = _round_top(max(totals.values())), float(TOP + HEIGHT)
    width = (WIDTH - LEFT - RIGHT) * width_ms / max(axis.last_ms - axis.first_ms, width_ms) - 0.5
    parts = _scale(TOP, HEIGHT, top)
    below: dict[int, int] = {}
    for name, of_it in groups.items():
        for row in of_it:
            at = row["at_ms"]
            low = below.get(at, 0)
            below[at] = low + row[value]
            y, height = floor - HEIGHT * below[at] / top, HEIGHT * row[value] / top
            x = min(axis.x(at), WIDTH - RIGHT - width)
            place = f"x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'"
            text = f"from {time_text(at)}: {row[value]:,} {escape(words(name))}"
            parts.append(f"<rect {place} fill='{colors[name]}'><title>{text}</title></rect>")
    sums = {name: sum(row[value] for row in of_it) for name, of_it in groups.items()}
    legend = "".join(f"<li>{swatch(colors[name])}{escape(words(name))} {sums[name]:,}</li>" for name in sums)
    return _svg(floor + BOTTOM, [*parts, *axis.draw(floor)]) + f"<ul class='legend'>{legend}</ul>"


def swatch(color: str) -> str:
    """A small square of a colour, for legends and tables."""
    return f"<i style='background:{color}'></i>"


def words(name: str) -> str:
    """The name of a column or a kind in words."""
    for part, text in (
        ("under_min_isr", "under min.insync.replicas"),
        ("under_rep", "under-rep"),
        ("isr_", "ISR "),
    ):
        name = name.replace(part, text)
    return name.replace("_", " ")


def _step(top: int) -> int:
    """The distance of round counts of which there are at most five up to a count."""
    return next(
        factor * 10**power for power in range(20) for factor in (1, 2, 5) if top <= 4 * factor * 10**power
    )


def _round_top(most: int) -> int:
    """The lowest round count that is not below another."""
    step = _step(max(most, 1))
    return -(-max(most, 1) // step) * step


def _scale(y: float, height: float, top: int) -> list[str]:
    """Lines of round counts, and the counts."""
    parts = []
    for count in range(0, top + 1, _step(top)):
        at = y + height * (1 - count / top)
        parts += [_line(LEFT, at, WIDTH - RIGHT, at, "grid"), _text(LEFT - 6, at + 4, f"{count:,}", "end")]
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> str:
    return f"<line class='{kind}' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'/>"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{escape(text)}</text>"


def _svg(height: float, parts: Sequence[str]) -> str:
    return f"<svg viewBox='0 0 {WIDTH} {height:.0f}' role='img'>{''.join(parts)}</svg>"


def _grouped(rows: Rows, by: str | None, colors: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each value of a column, in the order of colors; without a column, all as its first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in colors:
        of_it = [row for row in rows if by is None or row[by] == name]
        if of_it:
            found[name] = of_it
    return found
