"""Collections of garbage: none in a step, soon after it, and short while very many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kraftd.runtime.garbage import THRESHOLDS, YOUNG, GarbageCollection, GarbageCollections

STEP = 10_000  # objects that a step makes
STEPS = 30


@contextmanager
def collections_noted() -> Iterator[list[int]]:
    """The number of objects that each collection visited; the collector is as before at the end."""
    visited: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            visited.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    before, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.callbacks.append(note)
    try:
        yield visited
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
        gc.unfreeze()
        if not was_enabled:
            gc.disable()


def test_collections_come_after_steps_and_visit_what_is_new() -> None:
    planned: list[Callable[[], None]] = []
    held: list[object] = []
    garbage = GarbageCollections(planned.append, lambda what, took_ns: held.append(what))
    kept: list[Any] = []
    with collections_noted() as visited:
        garbage.begin()
        for _ in range(STEPS):
            in_step = len(visited)
            kept += [[number] for number in range(STEP)]
            garbage.look()
            garbage.look()
            assert len(visited) == in_step and len(planned) <= 1
            while planned:
                planned.pop()()
    assert STEPS // 3 <= len(visited) == len(held) <= STEPS
    assert max(visited) <= YOUNG + 2 * STEP and type(held[0]) is GarbageCollection


def test_a_loop_that_is_held_leaves_collections_to_python() -> None:
    garbage = GarbageCollections(lambda _: None, lambda what, took_ns: None)
    with collections_noted() as visited:
        garbage.begin()
        kept = [[number] for number in range(2 * THRESHOLDS[0])]
    assert kept and visited


def test_cycles_are_freed() -> None:
    planned: list[Callable[[], None]] = []
    garbage = GarbageCollections(planned.append, lambda what, took_ns: None)
    with collections_noted():
        garbage.begin()
        cycles: list[Any] = [[] for _ in range(2 * YOUNG)]
        for each in cycles:
            each.append(each)
        del each
        count = len(gc.get_objects())
        cycles.clear()
        garbage.look()
        planned.pop()()
        assert len(gc.get_objects()) < count - YOUNG
