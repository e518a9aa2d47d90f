"""A build of the C engine that reports what it does wrong with memory and with arithmetic."""

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
    """What this machine has not got for such a build; None if nothing."""
    if shutil.which("gcc") is None:
        return "no gcc on the PATH"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no headers of this Python"
    if not all(Path(library).is_absolute() for library in libraries()):
        return "gcc has no AddressSanitizer"
    return None


def libraries() -> list[str]:
    """What must be in the process before all else."""
    asked = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    return [subprocess.check_output(command, text=True).strip() for command in asked]


def build(directory: Path, source: str | None = None) -> Path:
    """The engine, or another text of it, built into a directory."""
    text, made = directory / "_engine.c", directory / "_engine.so"
    text.write_text(SOURCE.read_text() if source is None else source)
    include = sysconfig.get_path("include")
    command = ["gcc", *FLAGS, "-fPIC", "-shared", f"-I{include}", str(text), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


def environment() -> dict[str, str]:
    """What a process needs that loads the build; CPython's own leaks at exit are not looked for."""
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries()),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "KRAFTD_CODEC": "python",
    }
