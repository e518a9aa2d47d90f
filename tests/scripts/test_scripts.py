"""Every scenario script prints its recorded output: `pytest tests/scripts --record` records it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scripts.interpreter import Script
from tools.prose import findings_in

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
COMMENT = re.compile(r"(?:^#.*\n)+", re.M)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_prints_what_was_recorded(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = Script().play(text)
    if request.config.getoption("--record", default=False):
        path.write_text(played)
    assert played == path.read_text()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_comments_of_a_script_keep_the_rules_for_prose(path: Path) -> None:
    text = path.read_text()
    for comment in COMMENT.finditer(text):
        line = text.count("\n", 0, comment.start()) + 1
        prose = re.sub(r"^# (--- )?", "", comment[0], flags=re.M)
        assert not list(findings_in(path.name, line, prose))
