"""Builds the C extensions with sanitizers, which report its faults of memory and arithmetic."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import kraftd

PACKAGE = Path(kraftd.__file__).parent
SOURCES = {
    "engine": PACKAGE / "wire" / "_engine.c",
    "records": PACKAGE / "wire" / "_records.c",
    "columns": PACKAGE / "spark" / "_columns.c",
}
# In a run of everything the three extensions share a minute.
GATE_SECONDS = float(os.environ.get("KRAFTD_FUZZ_SECONDS") or ("6" if os.environ.get("CI") else "5"))
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


def build(name: str, directory: Path, text: str | None = None) -> Path:
    """Build an extension into a directory, or another text in place of its source."""
    source, built = directory / SOURCES[name].name, directory / f"{name}.so"
    source.write_text(SOURCES[name].read_text() if text is None else text)
    include = sysconfig.get_path("include")
    command = ["gcc", *FLAGS, "-fPIC", "-shared", f"-I{include}", str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    return built


def environment() -> dict[str, str]:
    """The environment of a process that loads the build; leaks at CPython's exit are ignored."""
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries()),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "KRAFTD_CODEC": "python",
    }


def run_target(name: str, built: Path, seconds: float, seed: int = 0) -> subprocess.CompletedProcess[str]:
    """Fuzz a build for that long, or until the first fault."""
    return run_python("-m", f"tests.fuzzing.{name}", str(built), str(seconds), str(seed))


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python at the root of the project, such that it can load a build."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment(), cwd=PACKAGE.parent, capture_output=True, text=True, check=False
    )
