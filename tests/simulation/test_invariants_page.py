"""docs/invariants.md against the code: each invariant has a row, each row names existing code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.simulation.test_mutants import INVARIANTS, MUTANTS

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| ([SCDLTKPG]\d+) \| (.+) \| (.+) \| (.+) \|$", re.M)
NAME = re.compile(r"`([^`]+)`")


def rows() -> dict[str, tuple[list[str], list[str]]]:
    page = (ROOT / "docs" / "invariants.md").read_text()
    return {row[1]: (NAME.findall(row[3]), NAME.findall(row[4])) for row in ROW.finditer(page)}


def test_every_invariant_has_one_row() -> None:
    assert set(rows()) == INVARIANTS


@pytest.mark.parametrize("invariant", sorted(INVARIANTS))
def test_a_row_names_checkers_that_mention_the_invariant(invariant: str) -> None:
    for name in rows()[invariant][0]:
        checker = ROOT / "kraftd" / "simulation" / "checkers" / name
        file = checker if checker.is_file() else ROOT / name
        assert re.search(rf"\b{invariant}\b", _with_ranges(file.read_text())), (
            f"{file} never names {invariant}"
        )


def test_rows_name_each_planted_defect_at_the_invariant_that_detects_it() -> None:
    named = {(invariant, defect) for invariant, (_, defects) in rows().items() for defect in defects}
    assert named == {(planted.noticed_by[0], mutant.__name__) for mutant, planted in MUTANTS.items()}


def _with_ranges(text: str) -> str:
    """The text and all names between the ends of ranges such as `L1-L6` and `C3 to C10`."""
    for letter, first, last in re.findall(r"\b([SCDLTKPG])(\d+)(?:-| to )[SCDLTKPG](\d+)\b", text):
        text += "".join(f" {letter}{number}" for number in range(int(first), int(last) + 1))
    return text
