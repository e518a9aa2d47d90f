"""docs/evidence/raft-behaviours.md lists only existing stories and tests, and counts behaviours correctly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
DOC = (TESTS.parent / "docs" / "evidence" / "raft-behaviours.md").read_text()
SUITES = re.findall(r"^## (\w+) \((\d+)\)\n(.*?)(?=^## |\Z)", DOC, re.MULTILINE | re.DOTALL)


def rows(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize(("suite", "count", "table"), SUITES, ids=[suite for suite, _, _ in SUITES])
def test_every_behaviour_of_a_suite_is_listed_once_with_a_test(suite: str, count: str, table: str) -> None:
    names = [name for row in rows(table) for name in re.findall(r"`(\w+)`", row[0])]
    assert len(set(names)) == len(names) == int(count)
    for row in rows(table):
        assert len(row) == 3, row
        assert "`" in row[2] or row[2].startswith("does not apply:"), row


def test_every_listed_story_and_test_exists() -> None:
    named = set(re.findall(r"`(test_\w+|\w+\.txt)`", DOC))
    sources = [path.read_text() for room in ("raft", "fetch") for path in (TESTS / room).glob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"^def (test_\w+)\(", source, re.MULTILINE)}
    there |= {path.name for path in (TESTS / "scripts").glob("*.txt")}
    assert named - there == set()
