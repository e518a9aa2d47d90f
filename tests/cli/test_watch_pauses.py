"""`kraftd watch` shows what it holds once no further part of an event comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kraftd.cli.metadata import watch as watch_command
from kraftd.history.incidents import Incidents


class _Open(Incidents):
    """Holds something until it is closed."""

    def __init__(self, is_open: bool) -> None:
        super().__init__(lambda event: True, in_order=False)
        self._open = is_open

    @property
    def is_open(self) -> bool:
        return self._open

    def close(self) -> None:
        self._open = False


@pytest.mark.parametrize(("is_open", "pauses"), [(True, 1), (False, 0)])
def test_a_pause_is_reported_only_while_an_event_is_open(
    monkeypatch: pytest.MonkeyPatch, is_open: bool, pauses: int
) -> None:
    monkeypatch.setattr(watch_command, "PAUSE_S", 0.02)

    async def source() -> AsyncIterator[str]:
        yield "first"
        await asyncio.sleep(0.1)
        yield "second"

    async def seen() -> list[object]:
        incidents = _Open(is_open)
        found: list[object] = []
        async for batch in watch_command._with_pauses(source(), incidents):  # type: ignore[arg-type]
            found.append(batch)
            if batch is None:
                incidents.close()
        return found

    assert asyncio.run(seen()) == ["first", *[None] * pauses, "second"]
