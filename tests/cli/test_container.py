"""`kraftd container`: a file and the environment become a formatted, started node."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import pytest

from kraftd.cli.container import JVM, OWN, address, file_of, keys_of, way_of
from kraftd.cli.quorum.voter_probe import Presence, VoterAnswer
from kraftd.config import load
from kraftd.types import Endpoint
from testkit.process import free_port
from tests.cli.run import Run, command, run, write_config

IMAGE = Path(__file__).resolve().parents[2] / "docker"
CLUSTER = "l3vdR7naROGA1Z8u4GJdEQ"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = write_config(tmp_path, free_port())
    monkeypatch.setenv("KRAFTD_CONFIG", str(file))
    return file


def started(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `kraftd container` up to the moment at which the daemon would start."""
    monkeypatch.setattr("kraftd.cli.start.run_node", lambda config, rejoins: 0)
    monkeypatch.setattr("kraftd.cli.start.signal_stops", lambda: None)
    return run("container")


def test_variables_map_to_keys_as_in_apache_kafkas_image() -> None:
    variables = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_A__B___C": "x",
        "KRAFTD_METRICS_LISTENER": "h:1",
        **dict.fromkeys(OWN, "standalone"),
        **dict.fromkeys(JVM, "-D"),
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "INFO",
        "CLUSTER_ID": CLUSTER,
        "HOME": "/",
    }
    assert {"KRAFTD_CONFIG", "KRAFTD_FORMAT", "KRAFTD_BOOTSTRAP", "KRAFTD_CODEC"} < {*OWN}
    assert keys_of(variables) == ("a_b-c=x", "node.id=7", "kraftd.metrics.listener=h:1")


@pytest.mark.parametrize(
    ("roles", "name"),
    [
        ("", "server"),
        ("broker,controller", "server"),
        ("controller, broker", "server"),
        ("controller", "controller"),
        (" broker", "broker"),
    ],
)
def test_the_roles_choose_the_file_of_the_image(roles: str, name: str) -> None:
    assert file_of({"KAFKA_PROCESS_ROLES": roles}) == f"/etc/kraftd/{name}.properties"
    assert (IMAGE / f"{name}.properties").exists()
    assert file_of({"KAFKA_PROCESS_ROLES": roles, "KRAFTD_CONFIG": "/mine"}) == "/mine"


@pytest.mark.parametrize(
    ("name", "variables", "way"),
    [
        ("server", {}, "standalone"),
        (
            "server",
            {"KAFKA_ADVERTISED_LISTENERS": "HOST://h:9092,PLAINTEXT://h:1,CONTROLLER://h:2"},
            "standalone",
        ),
        ("server", {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "localhost:9093,other:9093"}, ""),
        ("server", {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093"}, ""),
        ("controller", {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "localhost:9093"}, ""),
        ("broker", {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "other:9093"}, "join"),
    ],
)
def test_only_what_can_have_no_other_quorum_is_formatted_without_a_word(
    name: str, variables: dict[str, str], way: str
) -> None:
    assert way_of(load(str(IMAGE / f"{name}.properties"), keys_of(variables))) == way


def test_a_new_directory_is_not_formatted_without_kraftd_format(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = started(monkeypatch)
    assert done.code == 3
    assert "is not formatted. KRAFTD_FORMAT is not set" in done.err
    monkeypatch.setenv("KRAFTD_FORMAT", "alone")
    done = started(monkeypatch)
    assert done.code == 2
    assert "KRAFTD_FORMAT=alone: must be one of standalone, join" in done.err


@pytest.mark.parametrize(
    ("way", "missing"),
    [
        ("join", "CLUSTER_ID"),
        ("initial-controllers", "KRAFTD_INITIAL_CONTROLLERS"),
        ("static", "controller.quorum.voters"),
    ],
)
def test_a_missing_variable_of_a_way_to_format_is_named(
    config: Path, monkeypatch: pytest.MonkeyPatch, way: str, missing: str
) -> None:
    monkeypatch.setenv("KRAFTD_FORMAT", way)
    if missing != "CLUSTER_ID":
        monkeypatch.setenv("CLUSTER_ID", CLUSTER)
    done = started(monkeypatch)
    assert done.code == 2
    assert f"KRAFTD_FORMAT={way} needs {missing}" in done.err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.dirs", " {0}/one"),
        ("log.dirs", "{0}/one,{0}/two"),
        ("log.dir", "{0}/one"),
        ("metadata.log.dir", "{0}/metadata"),
    ],
)
def test_a_second_start_uses_the_directory_that_the_first_formatted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    file = write_config(tmp_path, free_port(), log__dirs=None if key == "log.dir" else f"{tmp_path}/data")
    file.write_text(f"{file.read_text()}\n{key} = {value.format(tmp_path)}\n")
    monkeypatch.setenv("KRAFTD_CONFIG", str(file))
    monkeypatch.setenv("KRAFTD_FORMAT", "standalone")
    first = started(monkeypatch)
    assert first.code == 0, first.err
    assert "Formatted" in first.out
    monkeypatch.delenv("KRAFTD_FORMAT")
    second = started(monkeypatch)
    assert (second.code, second.out) == (0, "")
    monkeypatch.setenv("KAFKA_METADATA_LOG_DIR", str(tmp_path / "elsewhere"))
    third = started(monkeypatch)
    assert third.code == 3
    assert f"{tmp_path}/elsewhere is not formatted. KRAFTD_FORMAT is not set" in third.err


def test_a_volume_of_another_cluster_than_the_environments_is_refused_with_both_ids(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRAFTD_FORMAT", "standalone")
    monkeypatch.setenv("CLUSTER_ID", CLUSTER)
    assert started(monkeypatch).code == 0
    assert started(monkeypatch).code == 0
    other = "Nx_7lyWBRrSmxW_wwvmA5Q"
    monkeypatch.setenv("CLUSTER_ID", other)
    done = started(monkeypatch)
    assert done.code == 3
    assert f"CLUSTER_ID={other}" in done.err
    assert f"is of cluster {CLUSTER}" in done.err


THERE = VoterAnswer(-1, "peer:1", Presence.THERE)


@pytest.mark.parametrize(
    ("answer", "joins"),
    [
        (THERE._replace(cluster_id=CLUSTER), True),
        (THERE._replace(epoch=3), True),
        (THERE._replace(epoch=0), False),  # it waits for its first leader, perhaps for this node
        (THERE._replace(presence=Presence.UNCLEAR), False),
        (THERE._replace(presence=Presence.LOST), False),
    ],
)
def test_the_only_voter_joins_as_an_observer_if_its_cluster_lives_without_it(
    config: Path, monkeypatch: pytest.MonkeyPatch, answer: VoterAnswer, joins: bool
) -> None:
    monkeypatch.setenv("KRAFTD_FORMAT", "standalone")
    monkeypatch.setenv("CLUSTER_ID", CLUSTER)
    answers_with(monkeypatch, answer)
    done = started(monkeypatch)
    assert done.code == 0
    assert ("this controller joins it, as an observer" in done.out) is joins


def test_the_only_voter_is_not_formatted_beside_a_node_of_another_cluster(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRAFTD_FORMAT", "standalone")
    monkeypatch.setenv("CLUSTER_ID", CLUSTER)
    answers_with(monkeypatch, THERE._replace(presence=Presence.UNCLEAR, cluster_id="another"))
    done = started(monkeypatch)
    assert done.code == 3
    assert f"peer:1 is a node of cluster another, and this node is to be of {CLUSTER}" in done.err


def answers_with(monkeypatch: pytest.MonkeyPatch, answer: VoterAnswer) -> None:
    async def ask(*_: object) -> list[VoterAnswer]:
        return [answer]

    monkeypatch.setattr("kraftd.cli.quorum.voter_probe.ask_voters", ask)


def test_the_way_static_formats_a_static_quorum(
    config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port = free_port()
    file = write_config(
        tmp_path,
        port,
        controller__quorum__voters=f"1@127.0.0.1:{port}",
        controller__quorum__bootstrap__servers=None,
    )
    monkeypatch.setenv("KRAFTD_CONFIG", str(file))
    monkeypatch.setenv("KRAFTD_FORMAT", "static")
    monkeypatch.setenv("CLUSTER_ID", CLUSTER)
    done = started(monkeypatch)
    assert done.code == 0, done.err


def test_an_error_names_the_environment_as_the_source_of_a_bad_variable(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_NODE_ID", "x")
    done = started(monkeypatch)
    assert done.code == 2
    assert "node.id=x" in done.err
    assert "(environment)" in done.err


def test_it_starts_passes_its_health_check_and_exits_with_0(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRAFTD_FORMAT", "standalone")
    assert run("container", "--check").code == 1
    with subprocess.Popen(command("container"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as node:
        assert node.stdout is not None
        while b"listening" not in node.stdout.readline():
            assert node.poll() is None
        assert run("container", "--check").code == 0
        node.send_signal(signal.SIGTERM)
        assert node.wait(20) == 0


@pytest.mark.parametrize("address", ["foo", "a:b", ":", "a:99999", "a:1,b:2"])
def test_the_check_reports_an_invalid_address(
    config: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("KRAFTD_CONFIG", str(config))
    monkeypatch.setenv("KRAFTD_BOOTSTRAP", address)
    done = run("container", "--check")
    assert (done.code, done.err) == (
        2,
        f"KRAFTD_BOOTSTRAP={address}: must be host:port, like controller1:9093.\n",
    )


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "::1"),
        ("10.0.0.5", "10.0.0.5"),
        ("kafka1", "kafka1"),
    ],
)
def test_the_check_connects_to_a_local_address_of_the_listener(host: str, where: str) -> None:
    assert address(Endpoint("CONTROLLER", host, 9093)) == (where, 9093)


def test_the_check_fails_at_a_server_that_does_not_answer(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraftd.cli.container.CHECK_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("KRAFTD_BOOTSTRAP", f"127.0.0.1:{silent.getsockname()[1]}")
        assert run("container", "--check").code == 1
