"""Hosts whose names resolve among each other, each with a container of its name, or a process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.faults.namespaces import Hosts, NotPermitted


class NamedHosts:
    """Network namespaces by name. `ip netns exec` shows a command there the names of all as /etc/hosts."""

    def __init__(self, engine: Engine, names: Sequence[str]) -> None:
        self.engine = engine
        self.names = names
        self._hosts = Hosts(range(1, len(names) + 1))
        self._etc = [Path("/etc/netns", self.namespace(name)) for name in names]
        known = (f"{self.address(name)} {name}" for name in names)
        lines = "\n".join(("127.0.0.1 localhost", *known, ""))
        for etc in self._etc:
            etc.mkdir(parents=True)
            (etc / "hosts").write_text(lines)

    def __repr__(self) -> str:
        return f"<NamedHosts {', '.join(self.names)}>"

    def address(self, name: str) -> str:
        return self._hosts.address(self.names.index(name) + 1)

    def namespace(self, name: str) -> str:
        return self._hosts.namespace(self.names.index(name) + 1)

    def run_image(self, name: str, *words: str) -> None:
        """Start a container on its host, its root read-only and every capability dropped."""
        options = ["run", "--detach", "--name", name, "--read-only", "--cap-drop", "ALL"]
        options += ["--network", f"ns:/run/netns/{self.namespace(name)}"]
        options += [f"--add-host={other}:{self.address(other)}" for other in self.names]
        self.engine.podman(*options, *words)

    def close(self) -> None:
        for name in self.names:
            self.engine.try_podman("rm", "--force", "--time", "1", "--volumes", name)
        for etc in self._etc:
            (etc / "hosts").unlink()
            etc.rmdir()
        self._hosts.close()


def named_hosts(engine: Engine, names: Sequence[str]) -> Iterator[NamedHosts]:
    """For a fixture: hosts that are closed at the end. The test is skipped if this user may not make them."""
    try:
        hosts = NamedHosts(engine, names)
    except NotPermitted as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    try:
        yield hosts
    finally:
        hosts.close()
