"""``kraftd quorum add-controller`` and ``remove-controller``: the requests, and each way to fail."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest

from kraftd.cli.quorum import leader
from kraftd.cli.quorum.leader import NO_LEADER, NO_LEADER_REMEDY, Quorum
from kraftd.cli.quorum.voters import was_made
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.wire.api import ApiKey
from testkit.process import free_port, wait_until
from tests.cli.run import Run, command, run, started, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
DIRECTORY_ID = "PJ0y2k0hRWuT2vVYJ9yS6A"
UNUSED_ADDRESS = "127.0.0.1:1"
# At the end of a test, the last voter need not wait for a successor.
LEAVES_AT_ONCE = {"kraftd__shutdown__timeout__ms": "100"}


def add(bootstrap: str, config: Path, *more: str) -> Run:
    return run("quorum", "add-controller", "--bootstrap", bootstrap, "--config", config, *more)


def remove(bootstrap: str, node_id: int, directory_id: str, *more: str) -> Run:
    voter = ("--controller-id", node_id, "--controller-directory-id", directory_id)
    return run("quorum", "remove-controller", "--bootstrap", bootstrap, *voter, *more)


def formatted(folder: Path, port: int, *arguments: str, **changes: str | None) -> Path:
    folder.mkdir(exist_ok=True)
    config = write_config(folder, port, **changes)
    assert run("format", "-c", config, "-t", CLUSTER_ID, *(arguments or ("--standalone",))).code == 0
    return config


def test_a_dry_run_names_the_voter_to_be_added_and_sends_nothing(tmp_path: Path) -> None:
    config = formatted(tmp_path, 9093, "--no-initial-controllers", node__id="7")
    done = add(UNUSED_ADDRESS, config, "--dry-run")
    assert done.code == 0
    assert re.fullmatch(r"Would add controller 7:\S{22} at CONTROLLER://127\.0\.0\.1:9093\.\n", done.out)


def test_an_ipv6_address_is_shown_in_brackets(tmp_path: Path) -> None:
    config = formatted(
        tmp_path, 9093, "--no-initial-controllers", node__id="7", listeners="CONTROLLER://[::1]:9093"
    )
    assert add(UNUSED_ADDRESS, config, "--dry-run").out.endswith(" at CONTROLLER://[::1]:9093.\n")


def test_a_dry_run_names_the_voter_to_be_removed_and_sends_nothing() -> None:
    done = remove(UNUSED_ADDRESS, 3, DIRECTORY_ID, "--dry-run")
    assert (done.code, done.out) == (0, f"Would remove controller 3:{DIRECTORY_ID}.\n")


def test_an_unformatted_directory_cannot_be_added(tmp_path: Path) -> None:
    done = add(UNUSED_ADDRESS, write_config(tmp_path, 9093))
    assert done.code == 3
    assert "--no-initial-controllers" in done.err


def test_a_directory_of_another_node_cannot_be_added(tmp_path: Path) -> None:
    formatted(tmp_path, 9093)
    done = add(UNUSED_ADDRESS, write_config(tmp_path, 9093, node__id="2"))
    assert done.code == 3
    assert "directory of node 1" in done.err


def test_an_invalid_directory_id_is_a_usage_error() -> None:
    done = remove(UNUSED_ADDRESS, 3, "not-an-id")
    assert done.code == 2
    assert "--controller-directory-id" in done.err


def test_a_quorum_that_does_not_answer_has_an_exit_code(tmp_path: Path) -> None:
    assert add(UNUSED_ADDRESS, formatted(tmp_path, 9093)).code == 5
    assert remove(UNUSED_ADDRESS, 3, DIRECTORY_ID).code == 5


def test_the_leaders_reason_to_refuse_a_change_is_reported(tmp_path: Path) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    config = formatted(tmp_path / "leader", port)
    stranger = formatted(tmp_path / "other", free_port(), "--no-initial-controllers", node__id="2")
    with started(config):
        own = add(bootstrap, config)
        assert (own.code, own.err.split(":")[0]) == (1, "DUPLICATE_VOTER")
        absent = add(bootstrap, stranger, "--timeout", "1")
        assert (absent.code, absent.err.split(":")[0]) == (1, "REQUEST_TIMED_OUT")
        unknown = remove(bootstrap, 3, DIRECTORY_ID)
        assert (unknown.code, unknown.err.split(":")[0]) == (1, "VOTER_NOT_FOUND")


@pytest.mark.parametrize(
    ("key", "voted", "votes", "made"),
    [
        (ApiKey.ADD_RAFT_VOTER, False, True, True),
        (ApiKey.ADD_RAFT_VOTER, False, False, False),
        (ApiKey.ADD_RAFT_VOTER, True, True, False),  # the leader answers that it is a voter already
        (ApiKey.REMOVE_RAFT_VOTER, True, False, True),
        (ApiKey.REMOVE_RAFT_VOTER, True, True, False),
        (ApiKey.REMOVE_RAFT_VOTER, False, False, False),  # the leader answers that there is no such voter
    ],
)
def test_after_a_lost_answer_the_voters_show_if_the_change_was_made(
    key: ApiKey, voted: bool, votes: bool, made: bool
) -> None:
    assert was_made(key, voted, votes) is made


def test_adding_a_stopped_controller_is_repeated_until_it_runs(tmp_path: Path) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    keys = {"controller__quorum__bootstrap__servers": bootstrap, **LEAVES_AT_ONCE}
    stranger = formatted(tmp_path / "other", free_port(), "--no-initial-controllers", node__id="2", **keys)
    with started(formatted(tmp_path / "leader", port, **LEAVES_AT_ONCE)):
        added = start_premature("add-controller", bootstrap, "--config", stranger)
        with started(stranger):
            assert "Added controller 2:" in added.communicate(timeout=60)[0]
            assert added.returncode == 0
            assert voters(bootstrap) == [1, 2]


def test_a_change_is_repeated_until_the_quorum_has_a_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = [free_port(), free_port()]
    initial = ",".join(f"{n}@127.0.0.1:{port}:{DIRECTORY_ID[:-2]}{n}Q" for n, port in enumerate(ports, 1))
    servers = ",".join(f"127.0.0.1:{port}" for port in ports)
    keys = {"controller__quorum__bootstrap__servers": servers, **LEAVES_AT_ONCE}
    first, second = (
        formatted(tmp_path / str(n), port, "--initial-controllers", initial, node__id=str(n), **keys)
        for n, port in enumerate(ports, 1)
    )
    bootstrap = f"127.0.0.1:{ports[0]}"
    with started(first):
        options = ("--bootstrap", bootstrap, "--timeout", "0.5")
        wait_until(lambda: run("quorum", "describe", *options).code == 1, "it answers in time")
        assert run("quorum", "describe", *options).err.startswith(f"{NO_LEADER}\n")
        both = f"{bootstrap},127.0.0.1:{ports[1]}"
        for name in ("topics", "watch", "show", "backup -o /nowhere", "features describe"):
            done = run(*name.split(), "--bootstrap", both, "--timeout", "0.5")
            assert done.code == 1, done
            lines = done.err.splitlines()
            assert lines[0] == NO_LEADER
            assert f"127.0.0.1:{ports[0]}: it answers, and knows no leader" in lines
            assert f"127.0.0.1:{ports[1]}: Connection refused" in lines
            assert re.search(rf"^{bootstrap} says: no leader for \d+ s, since it started$", done.err, re.M)
            assert lines[-1] == NO_LEADER_REMEDY
        not_made = run("snapshot", first)
        assert (not_made.code, not_made.err.splitlines()[:2]) == (1, ["nothing is committed yet", NO_LEADER])
        lost = Quorum("", PartitionData(), ("127.0.0.1", ports[0]), {})
        monkeypatch.setattr(leader, "ask_leader", lambda *_: asyncio.sleep(0, lost))  # it led until now
        failed = run("backup", "-o", tmp_path / "begun", "--bootstrap", both, "--timeout", "0.5")
        assert failed.err.startswith(f"{NO_LEADER}\n")
        monkeypatch.undo()
        described = start_premature("describe", bootstrap, "--json")
        with started(second):
            quorum = json.loads(described.communicate(timeout=60)[0])
            assert [one["id"] for one in quorum["CurrentVoters"]] == [1, 2]


def start_premature(name: str, bootstrap: str, *more: object) -> subprocess.Popen[str]:
    """Start a command that cannot succeed yet, and let the quorum refuse it a few times."""
    asking = subprocess.Popen(
        command("quorum", name, "--bootstrap", bootstrap, "--timeout", "60", *more),
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(3):  # each of these runs lasts as long as one attempt of the command
        run("quorum", "describe", "--bootstrap", bootstrap, "--timeout", "0.5")
    return asking


def voters(bootstrap: str) -> list[int]:
    quorum = json.loads(run("quorum", "describe", "--bootstrap", bootstrap, "--json").out)
    return [one["id"] for one in quorum["CurrentVoters"]]
