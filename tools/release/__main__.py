"""``make release``: wheel, sdist and image of the current commit, their bills of materials and checksums.

The folder ./dist then has the wheel, the sdist and requirements.lock; the image as an archive for
`podman load` or `docker load`; a CycloneDX file for the distributions and one for the image; and SHA256SUMS.
Wheel, sdist and their bill are the same bytes wherever the commit is built with the same Python and compiler.
Downloads come from PyPI only, and for the image from its base's registry and Debian.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from tools.release.bill import bill_of, image, locked_hashes, program
from tools.release.container import Image, build_image, default_base, find_base, find_engine
from tools.release.distributions import ROOT, Failed, build, clone, commit_time_s, install, run
from tools.release.installed import in_directory

SUMS = "SHA256SUMS"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make release", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder to write (./dist)")
    parser.add_argument("--no-image", action="store_true", help="leave the container image out")
    parser.add_argument("--base", help="another base image than the Dockerfile's, such as a local one")
    parser.add_argument(
        "--build-option", action="append", default=[], metavar="OPTION",
        help="an option of podman's or docker's build, such as --build-option=--network=host; repeatable",
    )  # fmt: skip
    chosen = parser.parse_args(arguments)
    try:
        if run("git", "status", "--porcelain", cwd=ROOT):
            raise Failed("there are changes that are not committed: a release is made of a commit")
        with tempfile.TemporaryDirectory(prefix="kraftd-release-") as home:
            release = Release(Path(home), chosen.out)
            base = chosen.base or default_base(release.source)
            engine = "" if chosen.no_image else find_engine()
            if engine:
                find_base(engine, base)  # before the minutes that the other files take
            release.make_distributions()
            if engine:
                release.make_image(engine, base, chosen.build_option)
            release.make_sums()
    except Failed as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    return 0


class Release:
    """The files of a release, which come into `out` one by one."""

    def __init__(self, home: Path, out: Path) -> None:
        self.home, self.out = home, out
        self.source = clone(home)
        self.made_s = commit_time_s(self.source)
        self.lock = (self.source / "requirements.lock").read_text()
        self.files: list[Path] = []
        self.version = ""

    def __repr__(self) -> str:
        return f"<Release {self.version} in {self.out}, {len(self.files)} files>"

    def make_distributions(self) -> None:
        """Wheel, sdist, requirements, and the bill of what the wheel installs."""
        wheel, sdist = build(self.source, self.home / "dist", self.made_s)
        self.version = wheel.name.split("-")[1]
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / SUMS).unlink(missing_ok=True)
        self._take(wheel)
        self._take(sdist)
        self._take(self.source / "requirements.lock")
        environment = install(wheel, self.source, self.home / "environment")
        print(run(environment / "bin" / "kraftd", "version").splitlines()[0], flush=True)
        installed = in_directory(environment)
        installed.python = [package for package in installed.python if package.name != "kraftd"]
        files = {each.name: digest(each) for each in (wheel, sdist)}
        self._write(
            f"kraftd-{self.version}.cdx.json",
            bill_of(program(self.version), installed, locked_hashes(self.lock), files, self.made_s),
        )

    def make_image(self, engine: str, base: str, options: list[str]) -> None:
        """The image as an archive, and the bill of everything in it."""
        built = build_image(engine, self.source, f"localhost/kraftd:{self.version}", base, options)
        archive = self.out / f"kraftd-{self.version}-image.tar"
        built.save(archive)
        self._add(archive)
        self._write(f"kraftd-{self.version}-image.cdx.json", self.bill_of_image(built, base, archive))

    def bill_of_image(self, built: Image, base: str, archive: Path) -> str:
        return bill_of(
            image(self.version, built.id(), base),
            built.installed(),
            locked_hashes(self.lock),
            {archive.name: digest(archive)},
            self.made_s,
        )

    def make_sums(self) -> None:
        """The checksums of all files, for `sha256sum --check SHA256SUMS`."""
        self._write(SUMS, "".join(f"{digest(path)}  {path.name}\n" for path in sorted(self.files)))

    def _take(self, path: Path) -> None:
        self._add(Path(shutil.copy(path, self.out)))

    def _write(self, name: str, text: str) -> None:
        (self.out / name).write_text(text)
        self._add(self.out / name)

    def _add(self, path: Path) -> None:
        self.files.append(path)
        print(f"{path.stat().st_size:>12,}  {path}", flush=True)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
