"""The tables of keys in docs/configuration.md, made from the rows.

``python -m kraftd.config.reference docs/configuration.md`` puts them between the page's two markers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kraftd.config.daemon import SECTIONS, rows_of
from kraftd.config.keys import OWN
from kraftd.config.rows import Row
from kraftd.configdef.definition import broker_def

BEGIN = "<!-- Made by python -m kraftd.config.reference: begin -->"
END = "<!-- end -->"


def tables() -> str:
    """Every section of keys with its table: key, default, meaning."""
    parts = []
    for section in SECTIONS:
        lines = [f"### {section.__doc__}", "", "| key | default | meaning |", "|---|---|---|"]
        lines += [f"| `{row.key}` | {default_text(row)} | {row.text} |" for row in rows_of(section)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def default_text(row: Row[object]) -> str:
    definition = OWN if row.definition is not None else broker_def()
    key = definition[row.key]
    if key.required:
        return "required"
    return f"`{key.default}`" if key.default else "—"


def page_with_tables(page: str) -> str:
    """The page with the tables between its markers as they should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(page_with_tables(target.read_text()))
