"""A command reports that it waits for an answer, and that the node of a directory never ran."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.cli import wait_notice
from kraftd.cli.quorum.leader import OF_SILENT_CONTROLLERS, describe_quorum
from kraftd.client.failures import NoAnswer
from kraftd.wire.api import ApiKey
from tests.cli.run import run, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address that accepts connections and answers nothing; commands soon report that they wait."""
    monkeypatch.setattr(wait_notice, "SILENT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_broker_that_answers_is_not_called_silent_for_its_controllers() -> None:
    class Silent:
        address = "host:9092"

        def __init__(self, *apis: ApiKey) -> None:
            self.apis = apis

        def serves(self, key: ApiKey) -> bool:
            return key in self.apis

        async def ask(self, *_: object) -> None:
            raise NoAnswer("host:9092: no answer in time")

    def asked(connection: Silent) -> str:
        with pytest.raises(NoAnswer) as failed:
            asyncio.run(describe_quorum(connection, ("host", 9092)))  # type: ignore[arg-type]
        return str(failed.value)

    assert asked(Silent(ApiKey.METADATA)) == f"host:9092: {OF_SILENT_CONTROLLERS}"
    assert asked(Silent(ApiKey.VOTE)) == "host:9092: no answer in time"


@pytest.mark.parametrize(
    "words",
    [
        "quorum describe",
        "quorum remove-controller -i 1 -d PJ0y2k0hRWuT2vVYJ9yS1Q",
        "topics",
        "watch",
        "backup -o /nowhere/backup",
    ],
)
def test_a_command_reports_once_that_it_waits(silent: str, words: str) -> None:
    done = run(*words.split(), "--bootstrap", silent, "--timeout", "0.2")
    assert done.code == 5
    assert done.err.count("Waiting ") == 1, done.err


def test_doctor_reports_that_it_waits_on_standard_error_only(silent: str) -> None:
    done = run("doctor", "--bootstrap", silent, "--timeout", "0.2", "--json")
    assert done.code == 1
    assert done.err.startswith("Waiting for addresses that do not answer")
    assert "Waiting" not in done.out


def test_a_directory_whose_node_never_ran_is_reported_as_such(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    shown = run("show", "--directory", tmp_path / "data")
    assert shown.code == 1
    assert "its node has never run" in shown.err
