"""A large frame that cannot be read leaves nothing in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kraftd.requests.effects import ReadFrame
from kraftd.requests.intake import NotServed
from kraftd.requests.work_shares import Job
from kraftd.security.principals import ANONYMOUS
from kraftd.wire.errors import ProtocolError


class Frame(bytearray):
    """Bytes whose end is noticed."""


def damaged() -> Exception:
    return ProtocolError("Fetch", "topics", 7, "damaged")


@pytest.mark.parametrize("failure", [damaged, lambda: NotServed([])])
def test_a_frame_that_cannot_be_read_is_freed_at_once(failure: Callable[[], Exception]) -> None:
    """A traceback would hold it, with the frames of the thread that has read it."""
    frame = Frame(20_000)
    freed = weakref.ref(frame)

    def read(view: memoryview) -> None:
        try:
            raise ValueError(len(view))
        except ValueError as behind:
            raise failure() from behind

    job = Job((ANONYMOUS, "127.0.0.1"), 1, len(frame), partial(read, memoryview(frame)), lambda *_: None)
    del frame
    gc.disable()
    try:
        with ThreadPoolExecutor(1) as threads:
            found = threads.submit(ReadFrame(job).read).result()
        assert isinstance(found.outcome, type(failure()))
        del job, found
        assert freed() is None
    finally:
        gc.enable()


def test_a_fault_keeps_its_traceback_and_is_freed_by_the_collector() -> None:
    frame = Frame(20_000)
    freed = weakref.ref(frame)
    job = Job((ANONYMOUS, "127.0.0.1"), 1, 20_000, partial(int, memoryview(frame)), lambda *_: None)
    del frame
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(ReadFrame(job).read).result()
    assert isinstance(found.outcome, Exception) and found.outcome.__traceback__ is not None
    del job, found
    gc.collect()
    assert freed() is None
