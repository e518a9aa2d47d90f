"""Installation builds the C engine if there is a compiler, and succeeds without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def install(home: Path, **environment: str) -> Path:
    """Copy this checkout and build it as an installation does; return the folder with the package."""
    shutil.copy(ROOT / "setup.py", home)
    shutil.copytree(ROOT / "kraftd", home / "kraftd", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=home, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return home


def version(home: Path) -> str:
    command = [sys.executable, "-m", "kraftd", "version"]
    environment = {**os.environ, "PYTHONPATH": str(home), "KRAFTD_CODEC": ""}
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_without_a_compiler_the_python_engine_is_installed(tmp_path: Path) -> None:
    home = install(tmp_path, CC="no-such-compiler", PATH=os.path.dirname(sys.executable))
    assert not list(home.rglob("_engine*.so"))
    assert "codec engine python" in version(home)


@pytest.mark.skipif(
    shutil.which("gcc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="not run: no gcc, or no headers of Python",
)
def test_with_a_compiler_the_c_engine_is_installed(tmp_path: Path) -> None:
    home = install(tmp_path)
    assert list(home.rglob("_engine*.so"))
    assert "codec engine c" in version(home)
