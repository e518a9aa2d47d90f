"""Builds the C engine with sanitizers, which report its faults of memory and arithmetic."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import kraftd.wire.message

SOURCE = Path(kraftd.wire.message.__file__).with_name("_engine.c")
FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def lacking() -> str | None:
    """What this machine lacks for such a build; None if nothing."""
    if shutil.which("gcc") is None:
        return "no gcc on the PATH"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no headers of this Python"
    if not all(Path(library).is_absolute() for library in libraries()):
        return "gcc has no AddressSanitizer"
    return None


def libraries() -> list[str]:
    """Libraries that the process must load first."""
    commands = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    return [subprocess.check_output(command, text=True).strip() for command in commands]


def build(directory: Path, source: str | None = None) -> Path:
    """Build the engine, or another source of it, into a directory."""
    text, engine = directory / "_engine.c", directory / "_engine.so"
    text.write_text(SOURCE.read_text() if source is None else source)
    include = sysconfig.get_path("include")
    command = ["gcc", *FLAGS, "-fPIC", "-shared", f"-I{include}", str(text), "-o", str(engine)]
    subprocess.run(command, check=True)
    return engine


def environment() -> dict[str, str]:
    """The environment of a process that loads the build; leaks at CPython's exit are ignored."""
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries()),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "KRAFTD_CODEC": "python",
    }
