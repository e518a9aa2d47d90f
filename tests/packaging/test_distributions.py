"""A wheel and an sdist depend on the commit only, and installed elsewhere they work as the checkout does."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from tools.release.distributions import PIP, ROOT, build, clone, install, run

# Below the prefix of an installation.
SHARED = ("kraftd.service", "alerts.yml", "grafana-dashboard.json")
MADE_S = 1_700_000_000
CODE = (
    "from importlib.resources import files; import kraftd.messages.registry as r; "
    "print(len(r.APIS) > 50, files('kraftd.metrics.status_page').joinpath('status.html').is_file())"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Both; the wheel is built from the sdist, as for a package index."""
    return build(source, tmp_path_factory.mktemp("dist"), MADE_S)


@pytest.fixture(scope="module")
def environment(built: tuple[Path, Path], source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A separate environment with the wheel and the locked requirements."""
    return install(built[0], source, tmp_path_factory.mktemp("environment"))


def assert_works(environment: Path, cwd: Path) -> None:
    assert run(environment / "bin/kraftd", "version", cwd=cwd).startswith("kraftd ")
    assert run(environment / "bin/python", "-c", CODE, cwd=cwd).split() == ["True", "True"]
    for name in SHARED:
        (original,) = (one for folder in ("packaging", "monitoring") for one in ROOT.glob(f"{folder}/{name}"))
        assert (environment / "share" / "kraftd" / name).read_bytes() == original.read_bytes()


def test_a_wheel_installs_and_runs_with_all_of_its_files(environment: Path, tmp_path: Path) -> None:
    assert_works(environment, tmp_path)


@pytest.mark.thorough
def test_an_sdist_installs_and_runs_with_all_of_its_files(
    built: tuple[Path, Path], environment: Path, source: Path, tmp_path: Path
) -> None:
    pip = (*PIP, "--python", environment / "bin/python", "install")
    run(*PIP, "--python", environment / "bin/python", "uninstall", "--yes", "kraftd")
    run(*pip, "--require-hashes", "-r", source / "requirements-build.lock")
    run(*pip, "--no-deps", "--no-build-isolation", built[1])
    assert_works(environment, tmp_path)


@pytest.mark.thorough
def test_two_builds_of_a_commit_are_equal_byte_for_byte(
    built: tuple[Path, Path], source: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "with a longer" / "path"
    elsewhere.mkdir(parents=True)
    again = clone(elsewhere)
    for each in again.rglob("*.py"):
        os.utime(each, (1, 1))
    before = os.umask(0o077)
    try:
        others = build(again, tmp_path / "dist", MADE_S)
    finally:
        os.umask(before)
    for one, other in zip(built, others, strict=True):
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes(), f"{one.name} differs"


def test_extensions_of_a_wheel_name_no_path_of_the_build(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        extensions = {name: wheel.read(name) for name in wheel.namelist() if name.endswith(".so")}
        assert {entry.date_time[0] for entry in wheel.infolist()} == {2023}
    names = {name.partition(".")[0] for name in extensions}
    assert names == {"kraftd/wire/_engine", "kraftd/wire/_records", "kraftd/spark/_columns"}
    for content in extensions.values():
        # Some builds of Python have extensions name its own library directory.
        content = content.replace(sys.base_prefix.encode(), b"")
        assert re.findall(rb"/(?:tmp|home|root|src)/[ -~]*", content) == []
