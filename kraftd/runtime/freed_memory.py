"""Gives freed memory back to the system, which the C library's allocator keeps after a flood.

What is free between pieces in use stays resident: tens of MiB after thousands of connections or hostile
requests. glibc's ``malloc_trim`` gives whole pages of it back, but not those at the end of an arena of a
thread. So all threads share the main arena, of which few work at once: most wait for the interpreter's
lock. Until a trim, the memory of records stays for the records that follow: glibc would return each of these
buffers at once, and the system clears every page that it gives again. Other C libraries have none of this;
there nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import threading

from kraftd.runtime.huge_pages import collapse

POLL_S = 10.0
FREED_BYTES = 2 << 20  # since the last trim, or the least since then: less is not worth another one

# Of ``mallopt``: the variable that overrides it, its number and its value.
_OPTIONS = (
    ("MALLOC_ARENA_MAX", -8, 1),
    ("MALLOC_MMAP_THRESHOLD_", -3, 4 << 20),  # larger than the records of a partition in most answers
    ("MALLOC_TRIM_THRESHOLD_", -1, 16 << 20),
)


class _AllocatorInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``; fordblks: the free bytes of all arenas."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def set_options() -> None:
    """Let threads that begin later share one arena, and keep freed buffers until a trim.

    What the environment says otherwise stays.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return
    for variable, option, value in _OPTIONS:
        if variable not in os.environ:
            set_option(option, value)


class Allocator:
    """glibc's. Its calls leave the interpreter's lock to others. Raises AttributeError if it is not there."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info, self._trim = library.mallinfo2, library.malloc_trim
        self._info.restype = _AllocatorInfo

    def free_bytes(self) -> int:
        """What is free in the arenas, given back or not."""
        free: int = self._info().fordblks
        return free

    def trim(self) -> None:
        """Give free pages back."""
        self._trim(0)


class FreedMemory:
    """When to trim: once much was freed since the last time, and no more is being freed."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._least = self._last = allocator.free_bytes()

    def __repr__(self) -> str:
        return f"<FreedMemory {self._last} bytes, {self._least} after a trim>"

    def look(self) -> bool:
        """Look once; return whether memory was given back."""
        free = self._allocator.free_bytes()
        is_steady = free <= self._last + FREED_BYTES
        self._last, self._least = free, min(free, self._least)
        if not is_steady or free <= self._least + FREED_BYTES:
            return False
        self._allocator.trim()
        self._last = self._least = self._allocator.free_bytes()
        return True


def give_back_freed_memory() -> None:
    """Look every few seconds until the process ends, in a thread. What stays is put on huge pages."""
    try:
        freed = FreedMemory(Allocator())
    except AttributeError:
        return

    def watch() -> None:
        pause = threading.Event()
        is_on_huge_pages = False
        while True:
            pause.wait(POLL_S)
            if freed.look() or not is_on_huge_pages:
                collapse()
                is_on_huge_pages = True

    threading.Thread(target=watch, name="kraftd-memory", daemon=True).start()
