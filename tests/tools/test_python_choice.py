"""An environment is made with the fastest Python on PATH that can make one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "python_choice.py"

# What stands for a Python: whether it can build C extensions, and its seconds; None of one that fails.
Stand = tuple[bool, float] | None


def made(directory: Path, name: str, stand: Stand) -> str:
    """A directory on PATH with a file that answers as a Python does, or fails."""
    directory.mkdir()
    answer = "exit 1" if stand is None else f"printf '{stand[0]}\\t{stand[1]}\\t{directory.name}\\n'"
    file = directory / name
    file.write_text(f"#!/bin/sh\n{answer}\n")
    file.chmod(0o755)
    return str(directory)


def chosen(path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, env=os.environ | {"PATH": path}
    )


@pytest.mark.parametrize(
    ("stands", "expected"),
    [
        pytest.param([("python3.11", (True, 0.3)), ("python3.11", (True, 0.2))], "1", id="the fastest"),
        pytest.param([("python3.11", (False, 0.2)), ("python3.11", (True, 0.3))], "1", id="one that builds"),
        pytest.param([("python3.11", (False, 0.2))], "0", id="without a header, for want of another"),
        pytest.param([("python3.11", None), ("python3.11", (True, 0.3))], "1", id="one that works"),
        pytest.param([("python3", (True, 0.1)), ("python3.11", (True, 0.3))], "1", id="the locked version"),
        pytest.param([("python3.11", None), ("python3", (True, 0.3))], "1", id="another version"),
    ],
)
def test_the_fastest_python_that_can_be_used(
    tmp_path: Path, stands: list[tuple[str, Stand]], expected: str
) -> None:
    places = [made(tmp_path / str(number), name, stand) for number, (name, stand) in enumerate(stands)]
    assert chosen(os.pathsep.join(places)).stdout.strip() == expected


def test_a_path_without_a_usable_python(tmp_path: Path) -> None:
    done = chosen(made(tmp_path / "0", "python3", None))
    assert done.returncode == 1 and "Debian: python3-venv" in done.stderr


def test_the_pythons_of_this_machine() -> None:
    done = chosen(os.environ["PATH"])
    version = [done.stdout.strip(), "-c", "import sys, venv; print(sys.version_info >= (3, 11))"]
    assert subprocess.run(version, capture_output=True, text=True, check=True).stdout == "True\n"
