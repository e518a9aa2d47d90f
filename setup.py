"""Builds the C extensions where a C compiler is; else all is Python. Equal sources give equal distributions.

A wheel or sdist depends on neither the time, the directory, the umask nor the user of its build. Files in it
have the time SOURCE_DATE_EPOCH, which `make wheel` sets to that of the commit.
"""

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

# The first second that a zip file can hold.
EPOCH = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800"))
os.umask(0o022)


class BuildExtensions(build_ext):
    """Leaves the paths of the build and what only a debugger reads out of the extensions."""

    def build_extensions(self) -> None:
        here = os.path.abspath(os.curdir)
        for extension in self.extensions:
            extension.extra_compile_args += [f"-ffile-prefix-map={here}=.", "-g0"]
            extension.extra_link_args += ["-Wl,--build-id=none"]
        super().build_extensions()


class SourceDistribution(sdist):
    """Gives the files of the archive a fixed order, owner, mode and time."""

    def make_archive(self, base_name: str, format: str, **_: object) -> str:  # the name is setuptools'
        if format != "gztar":
            raise SystemExit(f"an sdist is a .tar.gz, not {format}")
        base, path = Path(base_name), Path(f"{base_name}.tar.gz")
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=EPOCH) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for source in [Path(base.name), *sorted(Path(base.name).rglob("*"))]:
                archive.add(source, recursive=False, filter=_plain)
        return str(path)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = EPOCH
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


setup(
    cmdclass={"build_ext": BuildExtensions, "sdist": SourceDistribution},
    ext_modules=[
        Extension(
            "kraftd.wire._engine",
            ["kraftd/wire/_engine.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
        Extension(
            "kraftd.wire._records",
            ["kraftd/wire/_records.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
        Extension(
            "kraftd.spark._columns",
            ["kraftd/spark/_columns.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
    ],
)
