"""Tables for people: aligned, coloured where a terminal shows it, whole lines where a script reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import click

from kraftd.cli.visible import raw
from kraftd.control_characters import visible, visible_cell

WIDE = 1000
LINES_PER_WRITE = 1000

_ANSI: dict[str, dict[str, object]] = {
    "bold": {"bold": True},
    "bold red": {"fg": "red", "bold": True},
    "yellow": {"fg": "yellow"},
}


def print_table(
    headings: Iterable[str],
    rows: Iterable[Sequence[str]],
    styles: Sequence[str] | None = None,
    *,
    wrap: bool = False,
) -> None:
    """Print a table without a frame; styles are rich's, one a row.

    With wrap a terminal gets long texts on several lines. Otherwise no value is cut: a narrow terminal breaks
    the lines, and a script reads them whole.
    """
    if wrap:
        _print_wrapped(headings, rows, styles)
    else:
        cells = [tuple(map(visible_cell, row)) for row in rows]
        _print_styled(_aligned(tuple(headings), cells, styles or ()))


def print_lines(lines: Iterable[str]) -> None:
    """Print very many lines, some at a time: to flush each one takes longer than to make it."""
    _print_styled(map(visible_cell, lines))


def _print_styled(lines: Iterable[str]) -> None:
    """Print lines whose foreign texts are visible already."""
    remaining, file = iter(lines), raw(sys.stdout)
    while some := list(islice(remaining, LINES_PER_WRITE)):
        click.echo("\n".join(some), file=file)


def _aligned(headings: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> Iterator[str]:
    """The lines of a table. Rich would take a hundred times as long, and hold each cell several times."""
    widths = [
        max(_width(heading), max((_width(row[at]) for row in rows), default=0))
        for at, heading in enumerate(headings)
    ]
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for row, style in zip(chain([headings], rows), chain(["bold"], styles or [""] * len(rows)), strict=True):
        line = "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        yield click.style(line, **_ANSI[style]) if style and coloured else line  # type: ignore[arg-type]


def _width(cell: str) -> int:
    """The columns that a text takes in a terminal."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _print_wrapped(
    headings: Iterable[str], rows: Iterable[Sequence[str]], styles: Sequence[str] | None
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    for at, row in enumerate(rows):
        table.add_row(*(Text(visible(cell)) for cell in row), style=styles[at] if styles else None)
    console = Console(file=raw(sys.stdout), width=None if sys.stdout.isatty() else WIDE)
    console.print(table)
