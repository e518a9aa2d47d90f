"""Builds wheel and sdist of a commit, and installs the wheel with the locked requirements."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


class Failed(Exception):
    """A step of the release failed; the text is for people."""


def run(*words: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a command and return its standard output. Raises Failed with what it wrote."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | (environment or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def clone(home: Path) -> Path:
    """A clone of the current commit, which has none of the other files of the working tree."""
    source = home / "kraftd"
    run("git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", source)
    return source


def commit_time_s(source: Path) -> int:
    return int(run("git", "log", "-1", "--format=%ct", cwd=source))


def build(source: Path, to: Path, made_s: int) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; return both. It downloads nothing."""
    to.mkdir(parents=True, exist_ok=True)
    run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", to, source,
        environment={"SOURCE_DATE_EPOCH": str(made_s)},
    )  # fmt: skip
    (wheel,), (sdist,) = to.glob("*.whl"), to.glob("*.tar.gz")
    return wheel, sdist


def install(wheel: Path, source: Path, home: Path) -> Path:
    """Install the wheel and the locked requirements into a new environment, and return this one."""
    venv.create(home, with_pip=False)
    pip = (*PIP, "--python", home / "bin" / "python", "install")
    run(*pip, "--require-hashes", "-r", source / "requirements.lock")
    run(*pip, "--no-deps", wheel)
    return home
