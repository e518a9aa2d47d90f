"""Puts the interpreter's memory on huge pages, where a processor finds an address in fewer steps.

The objects of a request lie scattered over tens of MiB. After a pause nearly each of them costs a walk
through the page tables, in a virtual machine a longer one. Linux puts memory that is there already on huge
pages from 6.1 on; elsewhere nothing is changed.
"""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

_MADV_COLLAPSE = 25
_SIZE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
_MAPS = Path("/proc/self/maps")
_LEAST_IN_USE = 0.9  # of a huge page: the system would give memory for the rest


def collapse() -> int:
    """Put each stretch of private memory that is nearly all in use on a huge page.

    Returns how many stretches are on one now. Meanwhile other threads run.
    """
    try:
        size_bytes = int(_SIZE.read_text())
        maps = _MAPS.read_text()
        library = ctypes.CDLL(None)
        advise, resident = library.madvise, library.mincore
    except (OSError, ValueError, AttributeError):
        return 0
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    resident.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    pages = ctypes.create_string_buffer(size_bytes // mmap.PAGESIZE)
    collapsed = 0
    for begin, end in _private_memory(maps):
        aligned = -(-begin // size_bytes) * size_bytes
        for address in range(aligned, end - size_bytes + 1, size_bytes):
            if resident(address, size_bytes, pages) == 0 and pages.raw.count(1) >= _LEAST_IN_USE * len(pages):
                collapsed += advise(address, size_bytes, _MADV_COLLAPSE) == 0
    return collapsed


def _private_memory(maps: str) -> list[tuple[int, int]]:
    """Where the heap and other memory without a file begins and ends."""
    found = []
    for line in maps.splitlines():
        addresses, access, _, _, inode, *name = line.split(maxsplit=5)
        if access == "rw-p" and inode == "0" and (not name or name == ["[heap]"]):
            begin, end = addresses.split("-")
            found.append((int(begin, 16), int(end, 16)))
    return found
