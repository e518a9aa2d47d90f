"""Decodes large frames in a thread: the effect ReadFrame of any node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.host.ports import WorkThreads
from kraftd.requests.effects import ReadFrame


def read_frame(
    threads: WorkThreads,
    step: Callable[[Any], object],
    failed: Callable[[Exception], object],
    effect: ReadFrame,
) -> None:
    """Have a thread decode the frame, then step the node with FrameRead."""
    threads.run(effect.read, step, failed)
