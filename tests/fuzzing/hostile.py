"""Hostile values, bytes and moments for the C extensions, and rounds of them from a seed."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any

from kraftd.wire.message import Message

try:
    import _testcapi
except ImportError:  # some builds of Python lack it
    _testcapi = None

ODD: tuple[Any, ...] = (
    None, -1, 1 << 15, 1 << 31, 1 << 63, 1 << 64, 2.5, "x", "x" * 40000, "\ud800", b"", b"x" * 5000,
    bytearray(16), (), [], (1, 2), ["a", None], [None], {}, range(3), object(), ((100, b"x"), (100, b"")),
    ((3, b"x"),), ((1 << 31, b""),), ((100, "x"),), (5,),
)  # fmt: skip


def load(name: str, path: str | Path) -> Any:
    """Load a build of an extension, without regard to the installed one."""
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call, or its exception."""
    try:
        return function(*arguments)
    except (ValueError, TypeError, AttributeError, BufferError) as error:
        return type(error), str(error)


def plain(decoded: Any) -> Any:
    """A value in which records from different buffers compare equal."""
    if decoded is None:
        return None
    if isinstance(decoded, memoryview):
        return bytes(decoded)
    if isinstance(decoded, Message):
        return [plain(getattr(decoded, name)) for name in decoded.__struct_fields__]
    if isinstance(decoded, list | tuple):
        return [type(decoded), *map(plain, decoded)]
    return type(decoded), decoded


def exact(data: bytes) -> memoryview:
    """The bytes in memory that ends right behind them, from 17 bytes on; a bytes object ends with a zero."""
    return memoryview((ctypes.c_ubyte * len(data)).from_buffer_copy(data)).cast("B")


def without_memory(random: Random, function: Callable[..., Any], *arguments: Any) -> None:
    """Call with failing allocations: the result must be MemoryError or an ordinary refusal."""
    if _testcapi is None:
        return
    first = random.randrange(60)
    last = first + random.choice((1, 2, 1000))
    try:
        try:
            _testcapi.set_nomemory(first, last)
            function(*arguments)
        finally:
            _testcapi.remove_mem_hooks()
    except (MemoryError, ValueError, TypeError, AttributeError, BufferError):
        pass
    except SystemError as error:
        # CPython's own calls of Python functions may fail like this; calls of the engine's are named
        # built-in.
        if "built-in" in str(error):
            raise


Target = Callable[[Random, Any], None]


def run_rounds(targets: Sequence[Target], extension: Any, seconds: float, first_seed: int) -> int:
    """Run rounds for that many seconds, each with its own seed, and return how many.

    The seed of a failed round is printed.
    """
    sys.unraisablehook = lambda _: None  # for generators that were closed without memory
    end = time.monotonic() + seconds
    seed = first_seed
    while time.monotonic() < end:
        for target in targets:
            try:
                target(Random(seed), extension)
            except BaseException:
                print(f"{target.__name__}, seed {seed}", file=sys.stderr, flush=True)
                raise
        seed += 1
    return seed - first_seed


def fuzz(name: str, targets: Sequence[Target], path: str, seconds: str, seed: str = "0") -> int:
    """Run rounds on a build of the extension of that name, as arguments of a command say."""
    if os.environ.get("KRAFTD_CODEC") != "python":
        sys.exit("KRAFTD_CODEC=python is wanted: the extension to fuzz is given by its path")
    rounds = run_rounds(targets, load(name, Path(path).resolve()), float(seconds), int(seed))
    print(f"{name}: {rounds} rounds from seed {seed}")
    return 0
