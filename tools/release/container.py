"""Builds and saves the container image with podman or docker, and reads what it contains."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.release.distributions import Failed, run
from tools.release.installed import Installed, in_archive


@dataclass(frozen=True)
class Image:
    """An image in the engine's store; `engine` is podman or docker."""

    engine: str
    tag: str

    def id(self) -> str:
        """The digest of the image's configuration."""
        return str(self._inspect()["Id"]).removeprefix("sha256:")

    def save(self, path: Path) -> None:
        """Write the image as an archive for `docker load` and `podman load`."""
        path.unlink(missing_ok=True)
        kind = ["--format", "docker-archive"] if os.path.basename(self.engine) == "podman" else []
        run(self.engine, "save", *kind, "--output", path, self.tag)

    def installed(self) -> Installed:
        """The packages in its root file system. No process of the image runs for this."""
        container = run(self.engine, "create", self.tag).strip()
        try:
            with tempfile.TemporaryDirectory(prefix="kraftd-image-") as home:
                # To a file, as podman never ends if the reader of a pipe ends at the archive's last entry.
                path = Path(home) / "root.tar"
                run(self.engine, "export", "--output", path, container)
                with tarfile.open(path) as archive:
                    return in_archive(archive, archive)
        finally:
            with suppress(Failed):
                run(self.engine, "rm", container)

    def _inspect(self) -> dict[str, object]:
        found: list[dict[str, object]] = json.loads(run(self.engine, "image", "inspect", self.tag))
        return found[0]


def find_engine() -> str:
    """podman or docker. Raises Failed if neither is on the PATH."""
    for name in ("podman", "docker"):
        if shutil.which(name):
            return name
    raise Failed("no podman or docker on the PATH; --no-image leaves the image out")


def default_base(source: Path) -> str:
    """The base image that the Dockerfile names, with its digest."""
    lines = (source / "docker" / "Dockerfile").read_text().splitlines()
    return next(line for line in lines if line.startswith("ARG BASE=")).removeprefix("ARG BASE=")


def find_base(engine: str, base: str) -> None:
    """Pull the base image, unless the engine has it. Raises Failed."""
    if _has(engine, base):
        return
    try:
        run(engine, "pull", "--quiet", base)
    except Failed as error:
        raise Failed(
            f"{error}\nthe base image is not in the store of {engine} and cannot be pulled: "
            "--base names another one, --no-image leaves the image out"
        ) from None


def build_image(engine: str, source: Path, tag: str, base: str, options: Sequence[str]) -> Image:
    """Build the image from a clone on a base image, with further options of the engine's build."""
    dockerfile = source / "docker" / "Dockerfile"
    run(engine, "build", "--build-arg", f"BASE={base}", *options, "-f", dockerfile, "-t", tag, source)
    return Image(engine, tag)


def _has(engine: str, name: str) -> bool:
    try:
        run(engine, "image", "inspect", name)
    except Failed:
        return False
    return True
