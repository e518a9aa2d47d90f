"""The thresholds of the garbage collector keep its pauses short while very many objects are made to stay."""

from __future__ import annotations

import gc
from typing import Any

from kraftd.runtime.daemon import GC_THRESHOLDS

MADE = 300_000
MAX_VISITED = 50_000  # several milliseconds


def test_no_collection_but_that_of_all_objects_visits_very_many() -> None:
    visited: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] == 1:
            visited.append(len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))

    before, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.collect()
    gc.enable()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.callbacks.append(note)
    try:
        kept = [[number] for number in range(MADE)]
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
        if not was_enabled:
            gc.disable()
    assert len(kept) == MADE and visited and max(visited) <= MAX_VISITED
