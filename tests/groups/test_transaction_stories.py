"""Every story of a transaction coordinator prints its recorded output: `pytest tests/groups --record`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups.transaction_story import TransactionStory

STORIES = sorted(Path(__file__).with_name("transaction_stories").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story_prints_what_was_recorded(path: Path, request: pytest.FixtureRequest) -> None:
    played = TransactionStory().play(path.read_text())
    if request.config.getoption("--record", default=False):
        path.write_text(played)
    assert played == path.read_text()
