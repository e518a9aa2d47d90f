"""The plot of hostile load: for each attack, the longest wait of a peer's fetch on each side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

FIGURES_FILE = "hostile.json"
_COLORS = ("#bc4b51", "#2a6f97", "#9a9a9a", "#5b8e7d")
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "kraftd", "font.size": 8, "font.family": "sans-serif"}

_NO_LEADER = ", no leader afterwards"

Results = dict[str, dict[str, dict[str, Any]]]


def remember(results: Results, folder: Path) -> Results:
    """Put figures into the folder's file in place of older ones of the same attacks and sides; return all."""
    path = folder / FIGURES_FILE
    known: Results = json.loads(path.read_text()) if path.exists() else {}
    for row, sides in results.items():
        known.setdefault(row, {}).update(sides)
    path.write_text(json.dumps(known, indent=1) + "\n")
    return known


def draw(results: Results, folder: Path) -> Path:
    """Draw the bars, which are labelled with the wait and the number of new epochs."""
    sides = list(dict.fromkeys(side for row in results.values() for side in row))
    with pyplot.rc_context(_STYLE):
        drawing, axes = pyplot.subplots(
            figsize=(8, 0.8 + 0.22 * len(results) * len(sides)), layout="constrained"
        )
        for number, side in enumerate(sides):
            rows = [at for at, row in enumerate(results.values()) if side in row]
            waits_ms = [row[side]["fetch_max_ms"] for row in results.values() if side in row]
            epochs = [row[side]["depositions"] for row in results.values() if side in row]
            height = 0.8 / len(sides)
            places = [at + number * height for at in rows]
            axes.barh(places, waits_ms, height=height, color=_COLORS[number % len(_COLORS)], label=side)
            for place, wait_ms, count in zip(places, waits_ms, epochs, strict=True):
                deposed = _NO_LEADER if count is None else f", {count} new epochs" if count else ""
                axes.text(wait_ms * 1.05, place, f"{wait_ms:,.0f} ms{deposed}", va="center")
        axes.set_yticks([at + 0.4 - 0.4 / len(sides) for at in range(len(results))], list(results))
        axes.set_xscale("log")
        axes.margins(x=0.3, y=0.01)
        axes.invert_yaxis()
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=len(sides), frameon=False)
        drawing.suptitle("The longest wait of a peer's fetch under hostile load, ms", x=0.01, ha="left")
        path = folder / "hostile.svg"
        drawing.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(drawing)
    return path
