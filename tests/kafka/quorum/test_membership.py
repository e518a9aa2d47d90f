"""Voters that are added, removed and changed in use (KIP-853): by kraftd, Kafka's tool, or themselves.

Each step begins with the result of the one before, as an operator's do; the last leaves one voter.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.cli.main import main
from kraftd.types import uuid_text
from testkit.java import tools
from testkit.node import Kind
from testkit.process import free_port, wait_until
from testkit.quorum import Quorum

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def growing(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """One voter, 100."""
    with Quorum(tmp_path_factory.mktemp("growing"), {100: kind}) as quorum:
        quorum.start_controllers()
        yield quorum


def kraftd(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a kraftd command, which must succeed; return its output."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed.err
    return printed.out


def servers(quorum: Quorum) -> str:
    return ",".join(one.address for one in quorum.controllers.values() if one.alive)


def directory_of(quorum: Quorum, node_id: int) -> str:
    """The directory id of that voter; empty if the controller is no voter."""
    described = quorum.described()
    assert described is not None
    found = [one for one in described.current_voters if one.replica_id == node_id]
    return uuid_text(found[0].replica_directory_id) if found else ""


def test_kraftd_adds_a_controller_that_follows(growing: Quorum, capsys: pytest.CaptureFixture[str]) -> None:
    added = growing.add_observer(101, growing.controllers[100].kind)
    growing.wait_until_observer_is_level(101)
    arguments = ("--bootstrap", servers(growing), "--config", added.properties_file)
    assert "Would add controller 101:" in kraftd(capsys, "quorum", "add-controller", *arguments, "--dry-run")
    assert f"CONTROLLER://{added.address}" in kraftd(capsys, "quorum", "add-controller", *arguments)
    growing.wait_for_voters(100, 101)


def test_kafkas_tool_adds_a_controller_that_follows(growing: Quorum) -> None:
    added = growing.add_observer(102, growing.controllers[100].kind)
    growing.wait_until_observer_is_level(102)
    bootstrap = ("--bootstrap-controller", servers(growing))
    done = tools().run(
        "metadata-quorum", *bootstrap, "--command-config", added.properties_file, "add-controller"
    )
    assert "Added controller 102" in done.check().out
    growing.wait_for_voters(100, 101, 102)


def test_a_controller_can_join_by_itself(growing: Quorum) -> None:
    joining = {"controller.quorum.auto.join.enable": "true"}
    growing.add_observer(103, growing.controllers[100].kind, **joining)
    growing.wait_for_voters(100, 101, 102, 103)


def test_describe_shows_every_replica_and_its_lag(
    growing: Quorum, capsys: pytest.CaptureFixture[str]
) -> None:
    output = kraftd(capsys, "quorum", "describe", "--bootstrap", servers(growing), "--replication")
    rows = [line.split() for line in output.splitlines()[1:]]
    assert sorted(row[0] for row in rows) == ["100", "101", "102", "103"]
    assert sorted(row[-1] for row in rows) == ["Follower", "Follower", "Follower", "Leader"]
    by_kafka = growing.quorum_tool("describe", "--replication").out
    assert {line.split()[0] for line in by_kafka.splitlines()[1:]} == {"100", "101", "102", "103"}


def test_a_voter_that_comes_back_with_another_port_is_updated(growing: Quorum) -> None:
    moved = next(one for node_id, one in growing.controllers.items() if node_id != growing.leader())
    moved.stop()
    moved.move(free_port())
    moved.start()
    wait_until(lambda: moved.address in growing.voters_addresses(), f"the voters' record has {moved.address}")
    assert moved.address in growing.quorum_tool("describe", "--status").out
    growing.wait_for_voters(100, 101, 102, 103)


def test_a_voter_that_returns_with_an_empty_disk_replaces_itself(growing: Quorum) -> None:
    before = directory_of(growing, 103)
    wiped = growing.controllers[103]
    wiped.kill()
    shutil.rmtree(wiped.data)
    wiped.format(growing.cluster_id, "--no-initial-controllers")
    wiped.start()

    def replaced() -> bool:
        return directory_of(growing, 103) not in ("", before)

    wait_until(replaced, "103 votes with its new directory")
    growing.wait_for_voters(100, 101, 102, 103)


def test_kafkas_tool_removes_a_controller_that_is_down(growing: Quorum) -> None:
    growing.controllers[103].kill()
    directory_id = directory_of(growing, 103)
    growing.quorum_tool(
        "remove-controller", "--controller-id", 103, "--controller-directory-id", directory_id
    )
    growing.wait_for_voters(100, 101, 102)


def test_kraftd_removes_the_leader_and_another_leads(
    growing: Quorum, capsys: pytest.CaptureFixture[str]
) -> None:
    for voter_count in (2, 1):
        leader, epoch = growing.wait_for_leader(), growing.epoch()
        arguments = ("--controller-id", leader, "--controller-directory-id", directory_of(growing, leader))
        kraftd(capsys, "quorum", "remove-controller", "--bootstrap", servers(growing), *arguments)
        assert growing.wait_for_leader(after_epoch=epoch) != leader
        described = growing.described()
        assert described is not None
        assert len(described.current_voters) == voter_count


def test_the_last_voter_cannot_be_removed(growing: Quorum, capsys: pytest.CaptureFixture[str]) -> None:
    leader = growing.wait_for_leader()
    arguments = ("--controller-id", leader, "--controller-directory-id", directory_of(growing, leader))
    with pytest.raises(SystemExit) as ended:
        main(["quorum", "remove-controller", "--bootstrap", servers(growing), *map(str, arguments)])
    assert ended.value.code == 1
    assert "VOTER_NOT_FOUND" in capsys.readouterr().err


def test_a_static_quorum_becomes_dynamic_and_accepts_another_voter(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Quorum(tmp_path, dict.fromkeys((100, 101, 102), kind), static=True) as quorum:
        quorum.start_controllers()
        quorum.wait_for_voters(100, 101, 102)
        wait_until(
            lambda: (
                quorum.try_controller_tool("features", "upgrade", "--feature", "kraft.version=1").code == 0
            ),
            "kraft.version is 1",
        )
        assert directory_of(quorum, 101) != directory_of(quorum, 102)
        servers_now = servers(quorum)
        quorum.become_dynamic()
        for controller in quorum.controllers.values():
            controller.stop()
            quorum.start_controllers(controller.node_id)
            quorum.wait_for_voters(100, 101, 102)
        added = quorum.add_observer(103, kind)
        quorum.wait_until_observer_is_level(103)
        arguments = ("--bootstrap", servers_now, "--config", added.properties_file)
        kraftd(capsys, "quorum", "add-controller", *arguments)
        quorum.wait_for_voters(100, 101, 102, 103)
