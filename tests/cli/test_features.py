"""``kraftd features`` and ``kraftd quorum make-dynamic`` at a quorum that begins static."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.cli.quorum.dynamic import VOTERS, Seen, judge
from kraftd.cli.quorum.leader import Quorum
from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState
from testkit.process import free_port, wait_until
from tests.cli.run import Run, run, started, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
NOW_MS = 1_000_000


class Node:
    """A static quorum of one."""

    def __init__(self, folder: Path) -> None:
        self.bootstrap = f"127.0.0.1:{free_port()}"
        port = int(self.bootstrap.partition(":")[2])
        keys = {VOTERS.replace(".", "__"): f"1@{self.bootstrap}"}
        self.config = write_config(folder, port, controller__quorum__bootstrap__servers=None, **keys)
        assert run("format", "-c", self.config, "-t", CLUSTER_ID).code == 0

    def features(self, *arguments: object) -> Run:
        return run("features", arguments[0], "--bootstrap", self.bootstrap, *arguments[1:])

    def make_dynamic(self, *arguments: object) -> Run:
        return run("quorum", "make-dynamic", "--bootstrap", self.bootstrap, *arguments)

    def finalized(self, name: str) -> int:
        return int(json.loads(self.features("describe", "--json").out)[name]["finalized"])


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("static"))
    with started(node.config):
        wait_until(lambda: node.finalized("metadata.version") == 30, "it is active")
        yield node


def test_metadata_version_goes_down_and_up_again(node: Node) -> None:
    dry_run = node.features("downgrade", "--feature", "metadata.version=4.2", "--dry-run")
    assert (dry_run.code, dry_run.out) == (0, "metadata.version could become 29 (4.2-IV1).\n")
    assert node.finalized("metadata.version") == 30
    done = node.features("downgrade", "--feature", "metadata.version=4.2")
    assert (done.code, done.out) == (0, "metadata.version is now 29 (4.2-IV1).\n")
    assert "29 (4.2-IV1)" in node.features("describe").out
    assert node.features("upgrade", "--feature", "metadata.version=30").code == 0
    assert node.finalized("metadata.version") == 30


def test_a_refused_downgrade_names_the_records_that_it_would_lose(node: Node) -> None:
    refused = node.features("downgrade", "--feature", "metadata.version=3.5-IV2", "--dry-run")
    assert refused.code == 1
    assert "controller 1 is registered" in refused.err
    assert "feature eligible.leader.replicas.version is 1" in refused.err


def test_an_invalid_level_is_a_usage_error(node: Node) -> None:
    assert node.features("upgrade", "--feature", "metadata.version=9.9").code == 2
    assert node.features("upgrade", "--feature", "kraft.version").code == 2


def test_make_dynamic_names_the_keys_to_change_in_files(node: Node, tmp_path: Path) -> None:
    dry_run = node.make_dynamic("--dry-run", "--config", node.config)
    assert dry_run.code == 0, dry_run.err
    assert "leave it until the quorum is dynamic" in dry_run.out
    assert (
        f"Change the files only then: in the file of every controller and broker, replace {VOTERS}"
        in dry_run.out
    )
    assert f"controller.quorum.bootstrap.servers={node.bootstrap}" in dry_run.out
    assert node.finalized("kraft.version") == 0
    nothing_yet = write_config(tmp_path)
    early = node.make_dynamic("--dry-run", "--config", nothing_yet)
    assert f"has no {VOTERS}, and the quorum is static" in early.out
    assert node.make_dynamic().code == 0
    assert node.finalized("kraft.version") == 1
    again = node.make_dynamic(
        "--config", node.config, "--config", nothing_yet, "--config", tmp_path / "absent"
    )
    assert (again.code, "dynamic already" in again.out) == (0, True)
    assert f"still has {VOTERS}" in again.out
    assert f"and no {VOTERS}" in again.out
    assert "cannot be read" in again.out


def test_make_dynamic_names_the_voters_that_prevent_it() -> None:
    voters = [
        ReplicaState(1, last_fetch_timestamp=NOW_MS),
        ReplicaState(2, last_fetch_timestamp=NOW_MS),
        ReplicaState(3, last_fetch_timestamp=NOW_MS - 60_000),
        ReplicaState(4, last_fetch_timestamp=NOW_MS),
        ReplicaState(5, last_fetch_timestamp=NOW_MS),
    ]
    quorum = Quorum(CLUSTER_ID, PartitionData(leader_id=1, current_voters=voters), ("h", 1), {})
    seen = Seen(
        quorum,
        0,
        frozenset({1, 3}),
        {4: "refused", 5: "no answer"},
        frozenset({1, 2, 3, 5}),
        "INVALID_UPDATE_VERSION",
    )
    found = {one.subject: one.text for one in judge(seen) if one.is_wrong}
    assert found["voter 2"] == "does not support kraft.version 1"
    assert found["voter 3"] == "does not fetch from the leader"
    assert "is not registered" in found["voter 4"]
    assert found["voter 5"] == "cannot be asked: no answer"
    assert "INVALID_UPDATE_VERSION" in found["leader"]
    assert "voter 1" not in found
