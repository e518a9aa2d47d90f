"""Every scenario script prints its recorded output: `pytest tests/scripts --record` records it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.interpreter import Script

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_prints_what_was_recorded(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = Script().play(text)
    if request.config.getoption("--record", default=False):
        path.write_text(played)
    assert played == path.read_text()
