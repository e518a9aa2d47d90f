"""Voters whose addresses all changed at once find each other by bootstrap servers (KIP-1347)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from testkit.process import free_port, wait_until
from tests.cli.run import run
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess

DIRECTORIES = {1: "H87xU_NlTZWpT2_jxtrGPA", 2: "V9C6TGroS8S8loXWvvEYiw", 3: "y7yQQHEQTVmL5ZBEU0S1qA"}


class Voter(DaemonProcess):
    """One of three voters, which can get the new addresses of all of them in its file."""

    def __init__(self, home: Path, node_id: int) -> None:
        home.mkdir()
        super().__init__(home)
        self.node_id = node_id
        self._template = self.properties.read_text().replace("node.id=100", f"node.id={node_id}")

    def place(self, ports: Sequence[int]) -> None:
        """Listen on this voter's port, with all voters as bootstrap servers."""
        text, servers = self._template, ",".join(f"127.0.0.1:{port}" for port in ports)
        text = text.replace(
            f"CONTROLLER://127.0.0.1:{self._first_port}", f"CONTROLLER://127.0.0.1:{ports[self.node_id - 1]}"
        )
        text = text.replace(f"servers=127.0.0.1:{self._first_port}", f"servers={servers}")
        self.properties.write_text(text)
        self.port = ports[self.node_id - 1]

    @property
    def _first_port(self) -> int:
        line = next(line for line in self._template.splitlines() if line.startswith("listeners="))
        return int(line.rpartition(":")[2])


@pytest.fixture
def voters(tmp_path: Path) -> Iterator[list[Voter]]:
    started = [Voter(tmp_path / f"{node_id}", node_id) for node_id in DIRECTORIES]
    yield started
    for voter in started:
        if voter.process is not None:
            voter.stop(signal.SIGKILL)


def described(port: int) -> dict[str, Any]:
    done = run("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}", "--json", "--timeout", "5")
    return dict(json.loads(done.out)) if done.code == 0 else {}


def test_three_voters_that_all_moved_elect_a_leader_and_update_their_addresses(voters: list[Voter]) -> None:
    before = [free_port() for _ in voters]
    initial = ",".join(
        f"{node_id}@127.0.0.1:{port}:{directory}"
        for (node_id, directory), port in zip(DIRECTORIES.items(), before, strict=True)
    )
    for voter in voters:
        voter.place(before)
        config = str(voter.properties)
        voter.kraftd("format", "-c", config, "-t", CLUSTER_ID, "--initial-controllers", initial)
        voter.begin()
    wait_until(lambda: described(before[0]), "a leader", 30, 0.2)
    for voter in voters:
        voter.stop(signal.SIGKILL)
    after = [free_port() for _ in voters]
    for voter in voters:
        voter.place(after)
        voter.begin()
    wait_until(lambda: described(after[0]), "a leader at the new addresses", 60, 0.2)

    def is_updated() -> bool:
        text = json.dumps(described(after[1]))
        return all(str(port) in text for port in after) and not any(f":{port}" in text for port in before)

    wait_until(is_updated, "every voter's record has its new address", 60, 0.2)
