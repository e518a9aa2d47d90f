"""The page: HTML that needs no other file, and that prints with its tables and plots whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from kraftd.spark.report import figures, plots
from kraftd.spark.timeline import Timeline

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0
1rem } h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem } p { color: #555 }
table { border-collapse: collapse; font-size: .85rem; width: 100% }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid #ddd; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } svg { width: 100%; height: auto }
section { break-inside: avoid-page } tr { break-inside: avoid }
@media print { body { margin: 0; max-width: none; font-size: 11px } h2 { break-after: avoid } }
"""


def make_page(timeline: Timeline, step: Callable[[str], None]) -> str:
    """The report on a timeline; step is called after each part."""
    span = figures.find_span(timeline)
    parts = [_head(timeline, span)]

    def add(title: str, explanation: str, content: str) -> None:
        parts.append(f"<section><h2>{escape(title)}</h2><p>{escape(explanation)}</p>{content}</section>")
        step(title)

    rows = figures.partitions_over_time(timeline, span)
    add("Partitions over time", "How many there were.", _plot(rows, plots.steps, "partitions", "partitions"))
    rows = figures.unhealthy_over_time(timeline, span)
    plot = _plot(rows, plots.steps, "partitions", "partitions", "kind")
    add(
        "Unhealthy partitions",
        "Under-replicated, below min.insync.replicas, without a leader.",
        plot,
    )
    columns: tuple[str, ...] = ("kind", "name", "partitions", "intervals", "duration_ms", "longest_ms")
    rows = figures.longest_intervals(timeline)
    add("Topics that were not well for the longest", "Over all partitions of each.", _table(rows, columns))
    rows = figures.moves_over_time(timeline, span)
    add("Leader moves", "By cause.", _plot(rows, plots.bars, "moves", "moves", "cause"))
    columns = ("topic_name", "partition_id", "changes", "isr_shrinks", "isr_expands", "leader_moves")
    add("Top churners", "The partitions that changed most.", _table(figures.top_churners(timeline), columns))
    rows = figures.operations_over_time(timeline, span)
    add(
        "Admin operations over time",
        "By action.",
        _plot(rows, plots.bars, "operations", "operations", "action"),
    )
    columns = ("offset", "timestamp_ms", "action", "resource", "detail")
    note = f"The newest {figures.MAX_OPERATIONS} at most."
    add("Last admin operations", note, _table(figures.last_operations(timeline), columns))
    columns = ("offset", "timestamp_ms", "epoch", "leader_id", "voters")
    add("Leaders of the quorum", "The newest first.", _table(figures.elections(timeline), columns))
    title = f"Cluster {escape(str(timeline.cluster_id or ''))}"
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>{''.join(parts)}</body></html>\n"
    )


def _head(timeline: Timeline, span: figures.Span) -> str:
    source = timeline.source
    note = (
        f"From {source.replica.path}: offsets {source.start_offset} to {timeline.end_offset - 1}, "
        f"{_time(span.first_ms)} to {_time(span.last_ms)}."
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in source.notes)
    return f"<p>{escape(note)}</p>{notes}"


def _plot(rows: figures.Rows, draw: Callable[..., str], *arguments: str) -> str:
    return draw(rows, *arguments) if rows else "<p>None.</p>"


def _table(rows: figures.Rows, columns: Sequence[str]) -> str:
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(_heading(column))}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(_cell(column, row[column]) for column in columns) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _heading(column: str) -> str:
    return {"timestamp_ms": "time (UTC)", "duration_ms": "duration", "longest_ms": "longest"}.get(
        column, column.replace("_", " ")
    )


def _cell(column: str, value: Any) -> str:
    if column == "timestamp_ms":
        return f"<td>{_time(value)}</td>"
    if column in ("duration_ms", "longest_ms"):
        return f"<td class='number'>{value / 1000:,.1f} s</td>"
    if isinstance(value, int):
        return f"<td class='number'>{value}</td>"
    return f"<td>{escape('' if value is None else str(value))}</td>"


def _time(value_ms: int) -> str:
    return datetime.fromtimestamp(value_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
