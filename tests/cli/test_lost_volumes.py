"""Three controllers of `kraftd container`, whose KRAFTD_FORMAT stays set, lose their volumes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.cluster import random_uuid
from testkit.process import Process, free_port, wait_until
from tests.cli.cluster import create_topics, register_broker
from tests.cli.run import Run, command, run

CLUSTER_ID = "l3vdR7naROGA1Z8u4GJdEQ"
WAITS_FOR_3 = "it waits until controllers 3 have shown that they have no log"
TOPICS = [f"topic-{at}" for at in range(25)]


class Containers:
    """Three controllers, each with a volume, and the same variables as in docker/compose.yaml."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ports = {node: free_port() for node in (1, 2, 3)}
        self.ids = {node: random_uuid() for node in (1, 2, 3)}
        self.nodes = {node: self._process(node) for node in (1, 2, 3)}

    def _process(self, node: int) -> Process:
        home = self.home / f"n{node}"
        home.mkdir()
        (home / "controller.properties").touch()
        voters = ",".join(f"{one}@127.0.0.1:{self.ports[one]}:{self.ids[one]}" for one in self.ports)
        environment = {
            "KRAFTD_CONFIG": str(home / "controller.properties"),
            "CLUSTER_ID": CLUSTER_ID,
            "KRAFTD_FORMAT": "initial-controllers",
            "KRAFTD_INITIAL_CONTROLLERS": voters,
            **{f"KAFKA_{key.upper().replace('.', '_')}": value for key, value in self.keys(node).items()},
        }
        words = ["env", *(f"{key}={value}" for key, value in environment.items()), *command("container")]
        return Process(f"n{node}", home, lambda: words)

    def keys(self, node: int) -> dict[str, str]:
        return {
            "process.roles": "controller",
            "node.id": str(node),
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(
                f"127.0.0.1:{one}" for one in self.ports.values()
            ),
            "controller.quorum.auto.join.enable": "true",
            "log.dirs": str(self.data(node)),
        }

    def data(self, node: int) -> Path:
        return self.home / f"volume-{node}"

    def start(self, *nodes: int) -> None:
        for node in nodes:
            self.nodes[node].start()

    def stop(self, *nodes: int) -> None:
        for node in nodes:
            assert self.nodes[node].stop() == 0, self.nodes[node].log_text()

    def wipe(self, *nodes: int) -> None:
        for node in nodes:
            shutil.rmtree(self.data(node))

    def directory_id(self, node: int) -> str:
        found = re.search("directory.id=(.*)", (self.data(node) / "meta.properties").read_text())
        assert found is not None
        return found[1]

    def is_fresh(self, node: int) -> bool:
        """Return whether a node has another directory id than before."""
        fresh = self.directory_id(node) != self.ids[node]
        if fresh:
            self.ids[node] = self.directory_id(node)
        return fresh

    def recover(self, node: int) -> Run:
        keys = self.keys(node)
        file = self.home / "recover.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        return run("quorum", "recover", "--config", file, "--cluster-id-confirm", CLUSTER_ID)

    def voters(self, *nodes: int) -> list[int]:
        found = re.search(r"CurrentVoters:(.*)", self.describe(*nodes).out)
        return sorted(map(int, re.findall(r'"id": ?(\d+)', found[1]))) if found else []

    def describe(self, *nodes: int) -> Run:
        servers = ",".join(f"127.0.0.1:{self.ports[node]}" for node in nodes)
        return run("quorum", "describe", "--bootstrap", servers, "--timeout", "1")

    def leader(self, *nodes: int) -> int | None:
        found = re.search(r"LeaderId:\s+(\d+)", self.describe(*nodes).out)
        return int(found[1]) if found else None

    def wait_for_leader(self, *nodes: int) -> int:
        wait_until(lambda: self.leader(*nodes) is not None, f"a leader of {nodes}", 60)
        leader = self.leader(*nodes)
        assert leader is not None
        return leader

    def topics(self, *nodes: int) -> int:
        servers = ",".join(f"127.0.0.1:{self.ports[node]}" for node in nodes)
        done = run("topics", "--bootstrap", servers)
        assert done.code == 0, done
        return sum(f"topic-{at}" in done.out for at in range(len(TOPICS)))

    def said(self, node: int, text: str) -> bool:
        return text in self.nodes[node].log_text()


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    containers = Containers(tmp_path)
    yield containers
    for process in containers.nodes.values():
        process.kill()


def test_lost_volumes_never_become_a_new_cluster(containers: Containers) -> None:
    # All volumes are empty: the first election waits for the third, then needs no operator.
    containers.start(1, 2)
    wait_until(lambda: containers.said(1, WAITS_FOR_3), "1 waits for 3", 30)
    assert containers.leader(1, 2) is None
    containers.start(3)
    leader = containers.wait_for_leader(1, 2, 3)
    register_broker(containers.ports[leader], CLUSTER_ID)
    create_topics(containers.ports[leader], *TOPICS)
    assert {node: containers.directory_id(node) for node in (1, 2, 3)} == containers.ids

    # Two lose their volumes and start first: they start no election.
    containers.stop(1, 2, 3)
    containers.wipe(1, 2)
    containers.start(1, 2)
    for node in (1, 2):
        wait_until(lambda node=node: containers.said(node, WAITS_FOR_3), f"{node} waits for 3", 30)
    assert containers.leader(1, 2) is None
    containers.start(3)
    for node in (1, 2):
        wait_until(lambda node=node: containers.is_fresh(node), f"{node} has a fresh directory id", 60)

    # Nothing is lost: the operator recovers the quorum from the survivor, and the others join again.
    containers.stop(1, 2, 3)
    recovered = containers.recover(3)
    assert recovered.code == 0, recovered
    containers.start(1, 2, 3)
    assert containers.wait_for_leader(3) == 3
    assert containers.topics(3) == len(TOPICS)
    wait_until(lambda: containers.voters(3) == [1, 2, 3], "1 and 2 vote again", 60)

    # One loses its volume: it joins as an observer of the others, and then votes again.
    containers.stop(1)
    containers.wipe(1)
    before = containers.ids[1]
    containers.start(1)
    wait_until(lambda: containers.is_fresh(1), "1 has a fresh directory id", 60)
    wait_until(lambda: containers.voters(3, 2) == [1, 2, 3], "1 votes again", 60)
    assert containers.directory_id(1) != before
    containers.stop(1, 2, 3)
    for node in (1, 2, 3):
        done = run("dump", "--verify", containers.data(node))
        assert done.code == 0, done
        assert "Traceback" not in containers.nodes[node].log.read_text()


def test_a_first_election_goes_without_a_controller_that_an_operator_excuses(containers: Containers) -> None:
    for node in (1, 2):
        containers.nodes[node].environment["KRAFTD_FIRST_ELECTION_WITHOUT"] = "3"
    containers.start(1, 2)
    assert containers.wait_for_leader(1, 2) in (1, 2)
    containers.stop(1)
    containers.start(1)
    text = "kraftd.first.election.without is set, and this node has a log"
    wait_until(lambda: containers.said(1, text), "1 says that the key must go", 30)
