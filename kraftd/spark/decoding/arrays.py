"""Buffers of the column builder as arrays of Arrow, without a copy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

Buffers = tuple[int, int, bytes | None, bytes | None, bytes | None, tuple[Any, ...]]
"""Length, count of nulls, validity bits, offsets, data, and the same of the children."""


def array_of(kind: pa.DataType, buffers: Buffers) -> pa.Array:
    """The array over some buffers."""
    length, nulls, valid, offsets, data, children = buffers
    parts = [None if valid is None else pa.py_buffer(valid)]
    parts += [pa.py_buffer(part) for part in (offsets, data) if part is not None]
    if pa.types.is_list(kind):
        inner = [array_of(kind.value_type, children[0])]
    elif pa.types.is_struct(kind):
        inner = [array_of(kind.field(at).type, child) for at, child in enumerate(children)]
    else:
        return pa.Array.from_buffers(kind, length, parts, null_count=nulls)
    return pa.Array.from_buffers(kind, length, parts, null_count=nulls, children=inner)


def return_freed_memory() -> None:
    """Let Arrow give freed memory back to the system from now on.

    Its own allocator keeps what the largest step of a worker needed, and a worker has steps of all kinds.
    """
    pool = pa.system_memory_pool()
    pa.set_memory_pool(pool)
    pool.release_unused()  # what earlier steps left
