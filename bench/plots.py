"""Plots of the figures: how many times better than Apache Kafka each is, with both values beside its bar.

`python -m bench.plots` draws the committed figures again. The same figures give the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker

from bench.figures import FIGURES

FIGURES_FILE = "figures.json"
# For each plot: its file, its title, and the prefixes of its figures' keys.
GROUPS = {
    "requests": ("One controller", ("start_", "idle_", "create_", "heartbeats_", "empty_")),
    "secured": ("A secured controller", ("admin_", "alter_", "tls_", "acls_")),
    "quorum": ("Three controllers", ("three_",)),
    "failover": ("Until the next leader", ("failover_",)),
    "scale": ("A million partitions, a hundred brokers", ("scale_",)),
    "clients": ("Ordinary clients", ("clients_",)),
    "whole": ("A whole Kafka in one process", ("whole_",)),
    "coordinators": ("Coordinators and compaction", ("coordinators_", "compaction_")),
    "replication": ("A kraftd broker among stock ones", ("replication_",)),
    "codec": ("Codecs", ("codec_",)),
}
Bar = tuple[str, float, str]  # name, times better, both values as text
_BETTER, _WORSE, _LINE = "#2a6f97", "#c1666b", "#555555"
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "kraftd", "font.size": 8, "font.family": "sans-serif"}


def remember(report: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the figures in the folder by those of this report, write them, and return them."""
    path = folder / FIGURES_FILE
    figures = json.loads(path.read_text()) if path.exists() else {"kraftd": {}, "apache": {}}
    for side in ("kraftd", "apache"):
        figures[side] |= report[side]
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    return figures


def draw(report: dict[str, Any], folder: Path) -> list[Path]:
    """Draw an SVG for each group that has figures."""
    drawn = []
    for group, (title, beginnings) in GROUPS.items():
        bars = []
        for key, figure in FIGURES.items():
            if key.startswith(beginnings) and key in report["kraftd"] and key in report["apache"]:
                ours, theirs = report["kraftd"][key], report["apache"][key]
                times = figure.times_better(ours, theirs)
                if times is not None and figure.compared:
                    written = f"{figure.written(ours)}  |  {figure.written(theirs)}"
                    bars.append((figure.name, times, written))
        if bars:
            drawn.append(_draw(title, _shortened(bars), folder / f"{group}.svg"))
    return drawn


def _shortened(bars: list[Bar]) -> list[Bar]:
    """Names without the words before a colon, if these are the same in all."""
    if len({name.partition(": ")[0] for name, *_ in bars}) > 1:
        return bars
    return [(name.partition(": ")[2] or name, times, written) for name, times, written in bars]


def _draw(title: str, bars: list[Bar], path: Path) -> Path:
    """Draw bars from top to bottom on a logarithmic axis; 1 means as good as Apache Kafka."""
    with pyplot.rc_context(_STYLE):
        drawing, axes = pyplot.subplots(figsize=(9, 0.9 + 0.24 * len(bars)), layout="constrained")
        names, times, labels = zip(*bars, strict=True)
        rows = range(len(bars))
        colors = [_BETTER if value >= 1 else _WORSE for value in times]
        axes.barh(rows, [value - 1 for value in times], left=1, height=0.6, color=colors)
        for row, value, label in zip(rows, times, labels, strict=True):
            axes.text(max(value, 1) * 1.06, row, f"{value:.1f}x   {label}", va="center", color=_LINE)
        axes.set_yticks(rows, names)
        axes.set_xscale("log")
        axes.set_xlim(min(0.5, *times) * 0.9, max(times) * 30)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.margins(y=0.01)
        axes.axvline(1, color=_LINE, linewidth=0.8)
        axes.invert_yaxis()
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        drawing.suptitle(f"{title}: times better than Apache Kafka (kraftd  |  Kafka)", x=0.01, ha="left")
        drawing.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(drawing)
    return path


def main() -> None:
    folder = Path(__file__).with_name("plots")
    for path in draw(json.loads((folder / FIGURES_FILE).read_text()), folder):
        print(path)


if __name__ == "__main__":
    main()
