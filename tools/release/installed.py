"""Reads which packages of Python and of Debian a directory tree or a container image has."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import IO

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_METADATA = re.compile(r"(^|/)[^/]+\.dist-info/METADATA$")
_STATUS = re.compile(r"^(\./)?var/lib/dpkg/status$")
_OS_RELEASE = re.compile(r"^(\./)?(etc|usr/lib)/os-release$")


@dataclass(frozen=True)
class PythonPackage:
    """An installed distribution; `requires` are the names of those that it needs on this platform."""

    name: str
    version: str
    license: str | None
    is_expression: bool
    requires: frozenset[str]
    path: str


@dataclass(frozen=True)
class DebianPackage:
    name: str
    version: str
    architecture: str


@dataclass
class Installed:
    """What was found; `distro` is such as debian-12."""

    python: list[PythonPackage] = field(default_factory=list)
    debian: list[DebianPackage] = field(default_factory=list)
    distro: str | None = None


def python_package(metadata: Message, path: str) -> PythonPackage:
    """The package that a METADATA file describes."""
    found = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    needed = [each for each in found if each.marker is None or each.marker.evaluate({"extra": ""})]
    expression = metadata["License-Expression"]
    return PythonPackage(
        canonicalize_name(metadata["Name"]),
        metadata["Version"],
        expression or _older_license(metadata),
        expression is not None,
        frozenset(canonicalize_name(each.name) for each in needed),
        path,
    )


def _older_license(metadata: Message) -> str | None:
    """The license of a package without an SPDX expression; a whole text of a license is none."""
    short = metadata["License"]
    if short and "\n" not in short and short != "UNKNOWN":
        return str(short)
    prefix = "License :: OSI Approved :: "
    named = [text for text in metadata.get_all("Classifier", []) if text.startswith(prefix)]
    return " and ".join(text.removeprefix(prefix) for text in named) or None


def debian_packages(status: str) -> Iterator[DebianPackage]:
    """The packages of dpkg's status file that are installed."""
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): *(.*)$", stanza, re.M))
        if fields.get("Status", "").endswith(" installed"):
            yield DebianPackage(fields["Package"], fields["Version"], fields["Architecture"])


def in_directory(root: Path) -> Installed:
    """What a directory has, such as an environment of venv."""
    paths = sorted(root.rglob("*.dist-info/METADATA"))
    return Installed([_read(path.open("rb"), str(path.relative_to(root).parent)) for path in paths])


def in_archive(entries: Iterable[tarfile.TarInfo], archive: tarfile.TarFile) -> Installed:
    """What the root file system in an archive has. An entry is read as soon as it is seen."""
    found = Installed()
    for entry in entries:
        content = archive.extractfile(entry) if entry.isfile() else None
        if content is None:
            continue
        if _METADATA.search(entry.name):
            found.python.append(_read(content, "/" + entry.name.lstrip("./").rpartition("/")[0]))
        elif _STATUS.match(entry.name):
            found.debian = list(debian_packages(content.read().decode()))
        elif _OS_RELEASE.match(entry.name):
            found.distro = _distro(content.read().decode())
    found.python.sort(key=lambda package: (package.name, package.path))
    return found


def _read(file: IO[bytes], path: str) -> PythonPackage:
    with file:
        return python_package(BytesParser().parse(file), path)


def _distro(os_release: str) -> str:
    values = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', os_release, re.M))
    return f"{values.get('ID', 'linux')}-{values.get('VERSION_ID', 'unknown')}"
