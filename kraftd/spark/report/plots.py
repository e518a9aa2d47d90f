"""Plots as SVG text, to be embedded in a page."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import matplotlib
from matplotlib.figure import Figure

matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "kraftd"})
Rows = Sequence[dict[str, Any]]


def steps(rows: Rows, value: str, label: str, by: str | None = None) -> str:
    """A step plot: a value holds until the next row; each value of the column `by` has a line."""
    figure, axes = _axes(label)
    for name, of_it in _grouped(rows, by).items():
        axes.step([_at(row) for row in of_it], [row[value] for row in of_it], where="post", label=name)
    return _finished(figure, axes, by is not None)


def bars(rows: Rows, value: str, label: str, by: str) -> str:
    """A bar plot: the counts of each part of time, stacked by the column `by`."""
    figure, axes = _axes(label)
    floor: dict[datetime, int] = {}
    times = sorted({_at(row) for row in rows})
    width = min(((b - a) for a, b in itertools.pairwise(times)), default=None)
    for name, of_it in _grouped(rows, by).items():
        at = [_at(row) for row in of_it]
        heights = [row[value] for row in of_it]
        axes.bar(at, heights, width or 0.001, bottom=[floor.get(time, 0) for time in at], label=name)
        for time, height in zip(at, heights, strict=True):
            floor[time] = floor.get(time, 0) + height
    return _finished(figure, axes, True)


def _axes(label: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    return figure, axes


def _finished(figure: Figure, axes: Any, legend: bool) -> str:
    axes.set_ylim(bottom=0)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.tick_params(axis="x", labelrotation=20)
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _grouped(rows: Rows, by: str | None) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault("" if by is None else str(row[by]), []).append(row)
    return found


def _at(row: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(row["at_ms"] / 1000, UTC)
