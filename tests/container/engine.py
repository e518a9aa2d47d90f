"""Builds and runs container images with Debian's buildah and podman: no daemon, no image registry.

Everything lives in a private store; the system's own store stays unchanged. No registry is asked: a stand-in
replaces the base that the Dockerfile fixes by digest. It is made of Debian's packages, with the layout of
python:3.11-slim-bookworm (a Python in /usr/local/bin). Some choices are workarounds: crun refuses hybrid
cgroups, so the engine uses runc; podman's default limits need a capability that a sandbox may lack, so it
sets its own; the OCI format drops HEALTHCHECK, so it uses Docker's.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from testkit.fetch import locked

BASE = "localhost/kraftd-base:stand-in"
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "timeout")
_STRIPPED = ("etc/apt/sources.list.d/*", "etc/apt/sources.list", "etc/resolv.conf", "etc/hostname")


def run(*command: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return its standard output. AssertionError with all its output if it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


class Engine:
    """buildah and podman on a private store."""

    def __init__(self, home: Path) -> None:
        self.home = home
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        files = min(files, 1 << 20) if files != resource.RLIM_INFINITY else 1 << 20
        storage, containers = home / "storage.conf", home / "containers.conf"
        storage.write_text(
            f'[storage]\ndriver = "overlay"\nrunroot = "{home}/run"\ngraphroot = "{home}/store"\n'
        )
        containers.write_text(
            f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]\nnetns = "host"\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        )
        self.environment = {
            "CONTAINERS_STORAGE_CONF": str(storage),
            "CONTAINERS_CONF": str(containers),
            "BUILDAH_ISOLATION": "chroot",
        }

    def buildah(self, *arguments: str) -> str:
        return run("buildah", *arguments, environment=self.environment)

    def podman(self, *arguments: str) -> str:
        return run("podman", *arguments, environment=self.environment)

    def logs(self, name: str) -> str:
        """What a container wrote to its two streams: podman gives each by a stream of its own."""
        done = subprocess.run(
            ["podman", "logs", name],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def try_podman(self, *arguments: str) -> int:
        """The exit code of a podman command that may fail."""
        return subprocess.run(
            ["podman", *arguments],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode

    def import_base(self) -> None:
        """Import the stand-in base image."""
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, str(base_tar()), "/")
        path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.buildah(
            "config",
            "--env",
            f"PATH={path}",
            "--env",
            "LANG=C.UTF-8",
            container,
        )
        self.buildah("commit", "--quiet", "--format", "docker", container, BASE)
        self.buildah("rm", container)

    def build(self, context: Path, dockerfile: str, tag: str) -> None:
        """Build a Dockerfile unchanged on the stand-in base; secrets tell pip how to reach its index here."""
        pip_conf = self.home / "pip.conf"
        pip_conf.touch(0o600)
        pip_conf.write_text(_pip_settings())
        authorities = os.environ.get("PIP_CERT") or "/etc/ssl/certs/ca-certificates.crt"
        self.buildah(
            "bud", "--pull=never", "--isolation", "chroot", "--network", "host", "--format", "docker",
            "--layers", "--build-arg", f"BASE={BASE}",
            "--secret", f"id=pip_conf,src={pip_conf}", "--secret", f"id=ca,src={authorities}",
            "-f", str(context / dockerfile), "-t", tag, str(context),
        )  # fmt: skip

    def close(self) -> None:
        """Remove every container and image of the store, and the store itself."""
        for command in (("rm", "-f", "-a", "-v", "-t", "1"), ("volume", "prune", "-f"), ("rmi", "-a", "-f")):
            self.try_podman(*command)
        run("buildah", "rm", "-a", environment=self.environment)
        self.try_podman("system", "reset", "--force")


def _pip_settings() -> str:
    """A pip.conf with the index that this machine's pip uses; later lines of pip's list take precedence."""
    listed = run(sys.executable, "-m", "pip", "config", "list")
    settings = {"cert": "/run/ca.pem"}
    for line in listed.splitlines():
        found = re.match(r"(?:global|:env:|install|user|site)\.([a-z-]+)='(.*)'$", line)
        if found and found[1] in _PIP_SETTINGS:
            settings[found[1]] = found[2]
    return "[global]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items())


def base_tar() -> Path:
    """The root file system of the stand-in base image, made once by mmdebstrap and kept in the cache."""
    with locked("container-base") as cache:
        tar = cache / "container-base-bookworm.tar"
        if not tar.exists():
            sources = Path("/etc/apt/sources.list.d/debian.sources")
            sources = sources if sources.exists() else Path("/etc/apt/sources.list")
            fresh = tar.with_suffix(".part")
            run(
                "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=tar",
                "--include=python3,python3-venv,ca-certificates",
                '--aptopt=Acquire::Check-Valid-Until "false"', "--dpkgopt=force-unsafe-io",
                *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")),
                '--customize-hook=chroot "$1" python3 -m venv /usr/local',
                *(f'--customize-hook=rm -f "$1"/{path}' for path in _STRIPPED),
                "bookworm", str(fresh), str(sources),
            )  # fmt: skip
            fresh.replace(tar)
    return tar
