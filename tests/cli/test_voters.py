"""``kraftd quorum add-controller`` and ``remove-controller``: what is asked, and every way not to get it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.run import Run, free_port, run, started, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
DIRECTORY_ID = "PJ0y2k0hRWuT2vVYJ9yS6A"
NOBODY = "127.0.0.1:1"


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


def test_a_dry_run_says_which_voter_would_be_added_and_asks_nobody(tmp_path: Path) -> None:
    config = formatted(tmp_path, 9093, "--no-initial-controllers", node__id="7")
    said = add(NOBODY, config, "--dry-run")
    assert said.code == 0
    assert re.fullmatch(r"Would add controller 7:\S{22} at CONTROLLER://127\.0\.0\.1:9093\.\n", said.out)


def test_a_dry_run_says_which_voter_would_be_removed_and_asks_nobody() -> None:
    said = remove(NOBODY, 3, DIRECTORY_ID, "--dry-run")
    assert (said.code, said.out) == (0, f"Would remove controller 3:{DIRECTORY_ID}.\n")


def test_a_directory_that_is_not_formatted_cannot_be_added(tmp_path: Path) -> None:
    said = add(NOBODY, write_config(tmp_path, 9093))
    assert said.code == 3
    assert "--no-initial-controllers" in said.err


def test_another_nodes_directory_cannot_be_added(tmp_path: Path) -> None:
    formatted(tmp_path, 9093)
    said = add(NOBODY, write_config(tmp_path, 9093, node__id="2"))
    assert said.code == 3
    assert "directory of node 1" in said.err


def test_what_is_no_directory_id_is_a_usage_error() -> None:
    said = remove(NOBODY, 3, "not-an-id")
    assert said.code == 2
    assert "--controller-directory-id" in said.err


def test_a_quorum_that_nobody_answers_for_has_its_code(tmp_path: Path) -> None:
    assert add(NOBODY, formatted(tmp_path, 9093)).code == 5
    assert remove(NOBODY, 3, DIRECTORY_ID).code == 5


def test_what_the_leader_has_against_a_change_is_told(tmp_path: Path) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    config = formatted(tmp_path / "leader", port)
    stranger = formatted(tmp_path / "other", free_port(), "--no-initial-controllers", node__id="2")
    with started(config):
        own = add(bootstrap, config)
        assert (own.code, own.err.split(":")[0]) == (1, "DUPLICATE_VOTER")
        absent = add(bootstrap, stranger, "--timeout", "10")
        assert (absent.code, absent.err.split(":")[0]) == (1, "REQUEST_TIMED_OUT")
        unknown = remove(bootstrap, 3, DIRECTORY_ID)
        assert (unknown.code, unknown.err.split(":")[0]) == (1, "VOTER_NOT_FOUND")
