"""Fetches in one call: the generators of fetch sessions, all of their slices at once."""

from __future__ import annotations

from inspect import isgeneratorfunction
from typing import Any

from kraftd.ground.pace import at_once


class AtOnce:
    """The methods of another object, each of which does all of its slices."""

    def __init__(self, sliced: object) -> None:
        self._sliced = sliced

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._sliced, name)
        if not isgeneratorfunction(found):
            return found
        return lambda *arguments: at_once(found(*arguments))

    def __len__(self) -> int:
        return len(self._sliced)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return repr(self._sliced)
