"""The page: HTML that needs no other file, for screens light and dark and for paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from kraftd.spark.inputs.extent import Extent
from kraftd.spark.report import figures, palette
from kraftd.spark.report.plots import TimeAxis, bars, steps, swatch, time_text, words
from kraftd.spark.report.written_tables import Rows, WrittenTables

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #222; --faint: #667; --line: #ddd }
@media (prefers-color-scheme: dark) {
:root { --page: #16181c; --ink: #e4e6ea; --faint: #9aa1ac; --line: #363b44 } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem;
margin: 2rem auto; padding: 0 1rem } h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem }
p { color: var(--faint) } table { border-collapse: collapse; font-size: .85rem; min-width: 50% }
th, td { text-align: left; padding: .2rem 1.6rem .2rem 0; border-bottom: 1px solid var(--line);
vertical-align: top }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.time { font-variant-numeric: tabular-nums; white-space: nowrap } td { overflow-wrap: anywhere }
svg { width: 100%; height: auto } svg text { fill: var(--faint); font-size: 11px }
line.axis { stroke: var(--faint) } line.grid { stroke: var(--line) }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .85rem }
i { display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px }
section { break-inside: avoid-page } tr { break-inside: avoid }
@media print { :root { --page: #fff; --ink: #222; --faint: #667; --line: #ddd }
body { margin: 0; max-width: none; font-size: 11px } h2 { break-after: avoid }
i, path, rect { print-color-adjust: exact } }
"""
HEADINGS = {
    "timestamp_ms": "time (UTC)",
    "start_timestamp_ms": "from (UTC)",
    "end_timestamp_ms": "to (UTC)",
    "registered_ms": "last registered (UTC)",
    "day_ms": "day (UTC)",
    "duration_ms": "duration",
    "lasted_ms": "duration",
    "longest_ms": "longest",
    "partition_id": "partition",
    "broker_id": "broker",
    "topic_name": "topic",
    "leader_id": "leader",
}
DURATIONS = ("duration_ms", "lasted_ms", "longest_ms", *palette.KINDS)


def make_page(tables: WrittenTables, step: Callable[[str], None], notes: Sequence[str] = ()) -> str:
    """The report of tables, with notes at its head; step is called after each of `PARTS`."""
    span = figures.find_span(tables)
    axis = TimeAxis(span.first_ms, span.last_ms)
    sections: list[str] = []
    for title, explanation, make in PARTS:
        content = make(tables, span, axis)
        sections.append(f"<section><h2>{escape(title)}</h2><p>{escape(explanation)}</p>{content}</section>")
        step(title)
    title = f"Cluster {escape(str(tables.extent.cluster_id or ''))}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width'><title>{title}</title><style>{STYLE}</style>"
        f"</head><body><h1>{title}</h1>{_head(tables.extent, span, notes)}{''.join(sections)}</body></html>\n"
    )


def _brokers(tables: WrittenTables, _: figures.Span, __: TimeAxis) -> str:
    rows = figures.brokers_now(tables)
    for row in rows:
        row["state"] = _state(row)
    columns = (
        "broker_id", "rack", "state", "leads", "preferred", "skew", "replicas", "sessions", "fencings",
        "registered_ms",
    )  # fmt: skip
    racks = figures.rack_totals(rows)
    named = [rack for rack in racks if rack["rack"]]
    if not named:
        return _table(rows, columns)
    found = figures.rack_violations(tables, len(named))
    violations = _table(found, ("topic_name", "partitions"))
    return (
        f"{_table(rows, columns)}<h3>Racks</h3>{_table(racks, ('rack', 'brokers', 'leads', 'replicas'))}"
        f"<h3>Topics with partitions in fewer racks than possible</h3>{violations}"
    )


def _state(row: Mapping[str, Any]) -> str:
    if row["fenced"] is None:
        return "unregistered"
    return "fenced" if row["fenced"] else "shutting down" if row["in_controlled_shutdown"] else "active"


def _partitions(tables: WrittenTables, span: figures.Span, axis: TimeAxis) -> str:
    rows = figures.partitions_over_time(tables, span)
    return steps(rows, "partitions", axis, {"": palette.PLAIN}) if rows else NONE


def _unhealthy(tables: WrittenTables, span: figures.Span, axis: TimeAxis) -> str:
    rows = figures.unhealthy_over_time(tables, span)
    return steps(rows, "partitions", axis, palette.KINDS, "kind") if rows else NONE


def _offline(tables: WrittenTables, span: figures.Span, _: TimeAxis) -> str:
    columns = ("topic_name", "partition_id", "start_timestamp_ms", "end_timestamp_ms", "lasted_ms", "brokers")
    return _table(figures.offline_intervals(tables, span), columns)


def _worst(tables: WrittenTables, span: figures.Span, _: TimeAxis) -> str:
    kinds = ("offline", "under_min_isr", "under_replicated")
    columns = ("topic_name", "partition_id", *kinds, "changes", "leader_moves")
    return _table(figures.worst_partitions(tables, span), columns)


def _longest(tables: WrittenTables, _: figures.Span, __: TimeAxis) -> str:
    columns = ("kind", "name", "partitions", "intervals", "duration_ms", "longest_ms")
    return _table(figures.longest_intervals(tables), columns, ("kind", palette.KINDS))


def _moves(tables: WrittenTables, span: figures.Span, axis: TimeAxis) -> str:
    rows = figures.moves_over_time(tables, span)
    return bars(rows, "moves", axis, span.width_ms, palette.CAUSES, "cause") if rows else NONE


def _churn(tables: WrittenTables, _: figures.Span, __: TimeAxis) -> str:
    columns = ("day_ms", "changes", "isr_shrinks", "isr_expands", "leader_moves")
    return _table(figures.churn_by_day(tables), columns)


def _churners(tables: WrittenTables, _: figures.Span, __: TimeAxis) -> str:
    columns = ("topic_name", "partition_id", "changes", "isr_shrinks", "isr_expands", "leader_moves")
    return _table(figures.top_churners(tables), columns)


def _operations(tables: WrittenTables, span: figures.Span, axis: TimeAxis) -> str:
    rows = figures.operations_over_time(tables, span)
    return bars(rows, "operations", axis, span.width_ms, palette.ACTIONS, "action") if rows else NONE


def _last_operations(tables: WrittenTables, _: figures.Span, __: TimeAxis) -> str:
    columns = ("offset", "timestamp_ms", "action", "resource", "detail")
    return _table(figures.last_operations(tables), columns, ("action", palette.ACTIONS))


def _elections(tables: WrittenTables, _: figures.Span, __: TimeAxis) -> str:
    columns = ("offset", "timestamp_ms", "epoch", "leader_id", "voters")
    return _table(figures.elections(tables), columns)


NONE = "<p>None.</p>"
Part = Callable[[WrittenTables, figures.Span, TimeAxis], str]
PARTS: tuple[tuple[str, str, Part], ...] = (
    (
        "Brokers",
        "At the end of the log. Skew: how many times its even share a broker leads. Preferred: what it leads "
        "once preferred leaders are elected. Sessions: how often it registered.",
        _brokers,
    ),
    ("Partitions over time", "How many there were.", _partitions),
    (
        "Unhealthy partitions",
        "How many there were at a time, by kind; each has a scale of its own.",
        _unhealthy,
    ),
    (
        "Offline partitions",
        f"The longest {figures.MOST_ROWS} periods in which a partition had no leader.",
        _offline,
    ),
    (
        "The worst partitions",
        f"The {figures.MOST_WORST} that were offline, below min.insync.replicas or under-replicated for the "
        "longest time in all.",
        _worst,
    ),
    ("Topics that were not well for the longest", "Over all partitions of each.", _longest),
    ("Leader moves", "By cause.", _moves),
    ("Churn a day", "Changes of partitions, the newest day first.", _churn),
    ("Top churners", "The partitions that changed most.", _churners),
    ("Admin operations over time", "By action.", _operations),
    ("Last admin operations", f"The newest {figures.MAX_OPERATIONS} at most.", _last_operations),
    ("Leaders of the quorum", "The newest first.", _elections),
)
"""Title, explanation and content of each section."""


def _head(extent: Extent, span: figures.Span, notes: Sequence[str]) -> str:
    source = extent.source
    note = (
        f"From {source.replica.path}: offsets {source.start_offset} to {extent.end_offset - 1}, "
        f"{time_text(span.first_ms)} to {time_text(span.last_ms)} UTC."
    )
    return "".join(f"<p>{escape(text)}</p>" for text in (note, *source.notes, *notes))


def _table(rows: Rows, columns: Sequence[str], colored: tuple[str, Mapping[str, str]] | None = None) -> str:
    """The columns of rows; those of numbers align right. One column may have a swatch before each value."""
    if not rows:
        return NONE
    head = "".join(f"<th{_kind(column, rows)}>{escape(_heading(column))}</th>" for column in columns)
    lines = []
    for row in rows:
        cells = []
        for column in columns:
            mark = swatch(colored[1][row[column]]) if colored is not None and colored[0] == column else ""
            cells.append(f"<td{_kind(column, rows)}>{mark}{escape(_shown(column, row[column]))}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _heading(column: str) -> str:
    return HEADINGS.get(column, words(column))


def _kind(column: str, rows: Rows) -> str:
    if column in DURATIONS or any(isinstance(row[column], int | float) for row in rows):
        return " class='time'" if column.endswith("_ms") and column not in DURATIONS else " class='number'"
    return ""


def _shown(column: str, value: Any) -> str:
    if value is None:
        return "not ended" if column == "end_timestamp_ms" else ""
    if column == "kind":
        return words(value)
    if column == "day_ms":
        return time_text(value)[:10]
    if column in DURATIONS:
        return duration_text(value)
    if column.endswith("_ms"):
        return time_text(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return (
        f"{value:,.2f}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def duration_text(ms: int) -> str:
    """A duration whose parts are aligned below each other: 2 d 03:04:05.6."""
    seconds, tenths = divmod(round(ms / 100), 10)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{tenths}"
    return f"{days:,} d {clock}" if days else clock
