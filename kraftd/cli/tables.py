"""Tables for people: aligned, coloured where a terminal shows it, whole lines where a script reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

WIDE = 1000


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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=not wrap)
    for at, row in enumerate(rows):
        table.add_row(*map(Text, row), style=styles[at] if styles else None)
    console = Console() if wrap and sys.stdout.isatty() else Console(width=WIDE)
    console.print(table)
