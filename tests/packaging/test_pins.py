"""Everything that a build, an installation or the image downloads is fixed by version and by hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted(ROOT.glob("requirements*.lock"))
ENTRY = re.compile(r"^([a-z0-9._-]+)==(\S+)((?:.*\\\n)*.*)", re.M)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# A pip that may only install what is there already, or what a lock file names by hash.
PIP_DOWNLOADS = re.compile(r"(?:pip\b|\(PIP\)).* (?:install|wheel|download) ")
SAFE = re.compile(r"--require-hashes|--no-build-isolation|--no-index")


def entries(lock: Path) -> dict[str, tuple[str, str]]:
    """Name -> version and the rest of each entry."""
    return {name: (version, rest) for name, version, rest in ENTRY.findall(lock.read_text())}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_requirement_of_a_lock_file_has_a_version_and_a_hash(lock: Path) -> None:
    found = entries(lock)
    lines = [line for line in lock.read_text().splitlines() if re.match(r"[A-Za-z]", line)]
    assert len(found) == len(lines) > 0
    assert [name for name, (_, rest) in found.items() if "--hash=sha256:" not in rest] == []


def test_all_lock_files_have_one_version_of_a_requirement() -> None:
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        for name, (version, _) in entries(lock).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_build_requirements_have_the_versions_of_their_lock_file() -> None:
    locked = entries(ROOT / "requirements-build.lock")
    for text in PROJECT["build-system"]["requires"]:
        requirement = Requirement(text)
        assert str(requirement.specifier) == f"=={locked[requirement.name][0]}"


def test_lock_files_satisfy_the_requirements_of_the_project() -> None:
    project = PROJECT["project"]
    extras = {f"-{name}": texts for name, texts in project["optional-dependencies"].items()}
    for name, texts in {"": project["dependencies"], **extras}.items():
        locked = entries(ROOT / f"requirements{name}.lock")
        for requirement in map(Requirement, texts):
            assert requirement.specifier.contains(locked[requirement.name.lower()][0]), str(requirement)


def test_the_base_image_is_fixed_by_digest() -> None:
    dockerfile = (ROOT / "docker/Dockerfile").read_text()
    base = re.search(r"^ARG BASE=(.*)@sha256:[0-9a-f]{64}$", dockerfile, re.M)
    assert base is not None and base[1] == "docker.io/library/python:3.11-slim-bookworm"
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.M)) == {"${BASE}"}


@pytest.mark.parametrize("name", ["Makefile", "docker/Dockerfile", ".ci/run"])
def test_pip_installs_nothing_that_is_not_locked(name: str) -> None:
    text = re.sub(r"\\\n", " ", (ROOT / name).read_text())
    commands = [part for line in text.splitlines() if line[:1] != "#" for part in line.split("&&")]
    downloads = [command for command in commands if PIP_DOWNLOADS.search(command)]
    assert [command for command in downloads if not SAFE.search(command)] == []
    assert downloads or name == ".ci/run"
