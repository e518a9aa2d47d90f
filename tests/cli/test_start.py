"""``kraftd start``: its announcement, its end, and the message and exit code of every failed start."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kraftd.cli.quorum.recover import own_voter
from kraftd.cli.start import announcement, trials
from kraftd.config import load
from testkit.process import free_port
from tests.cli.run import (
    announcement as announced,
)
from tests.cli.run import (
    command,
    fill,
    mounted,
    run,
    run_apart,
    started,
    tree,
    write_config,
)

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def formatted(folder: Path, port: int = 0, **changes: str | None) -> Path:
    config = write_config(folder, port, **changes)
    assert run("format", "-c", config, "-t", CLUSTER, "-s").code == 0
    return config


def test_it_announces_its_listener_and_the_settings_of_a_broker(tmp_path: Path) -> None:
    port = free_port()
    with started(formatted(tmp_path, port)) as (process, output):
        assert output.splitlines() == [
            f"kraftd is listening on 127.0.0.1:{port} (node 1, cluster {CLUSTER}).",
            "A broker joins with these two lines in its file:",
            f"  controller.quorum.bootstrap.servers=127.0.0.1:{port}",
            "  controller.listener.names=CONTROLLER",
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_an_interrupt_is_a_clean_stop_too(tmp_path: Path) -> None:
    with started(formatted(tmp_path, free_port())) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_background_job_of_a_shell_survives_an_interrupt(tmp_path: Path) -> None:
    config = formatted(tmp_path, free_port())
    ignoring = ("sh", "-c", 'trap "" INT; exec "$@"', "sh", *command("start", config))
    process = subprocess.Popen(ignoring, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        announced(process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0 and "SIGTERM" in err and "SIGINT" not in err, err


def test_describe_shows_the_running_quorum(tmp_path: Path) -> None:
    port = free_port()
    with started(formatted(tmp_path, port)):
        quorum = json.loads(run_apart("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}", "--json").out)
        assert (quorum["ClusterId"], quorum["LeaderId"]) == (CLUSTER, 1)
        [replica] = quorum["Replicas"]
        assert (replica["NodeId"], replica["Status"], replica["Lag"]) == (1, "Leader", 0)
        lines = run("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}").out.splitlines()
        assert f"{'LeaderId:':<24}1" in lines
        rows = run("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}", "--replication").out.splitlines()
        assert rows[0].split()[0] == "NodeId"
        assert rows[1].split()[0] == "1"


def test_an_address_that_does_not_answer_has_an_exit_code() -> None:
    done = run("quorum", "describe", "--bootstrap", f"127.0.0.1:{free_port()}", "--timeout", "1")
    assert done.code == 5
    assert "Connection refused" in done.err


@pytest.mark.parametrize(
    "words",
    [
        "quorum --bootstrap-controller ADDRESS describe --status",
        "quorum --bootstrap-server=ADDRESS --command-config FILE describe --replication",
        "quorum --bootstrap ADDRESS list-controllers",
        "quorum describe --bootstrap-controller ADDRESS",
        "features --bootstrap-server ADDRESS describe",
        "features --bootstrap-controller=ADDRESS upgrade --feature kraft.version=1",
        "quorum describe --bootstrap ADDRESS,",
        "quorum describe --bootstrap ,ADDRESS,,ADDRESS",
    ],
)
def test_a_cluster_is_named_as_with_kafkas_tools(tmp_path: Path, words: str) -> None:
    (tmp_path / "client").write_text("security.protocol=PLAINTEXT\n")
    values = {"ADDRESS": f"127.0.0.1:{free_port()}", "FILE": str(tmp_path / "client")}
    for name, text in values.items():
        words = words.replace(name, text)
    done = run(*words.split(), "--timeout", "0.2")
    assert (done.code, f"{values['ADDRESS']}: Connection refused" in done.err) == (5, True)


@pytest.mark.parametrize(
    "words", ["quorum --bootstrap a:1", "quorum --bootstrap", "quorum describe --bootstrap ,"]
)
def test_a_cluster_without_a_command_or_an_address_is_a_usage_error(words: str) -> None:
    assert run(*words.split()).code == 2


def test_a_peer_of_another_protocol_has_the_same_exit_code() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        done = run("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}", "--timeout", "0.2")
    assert done.code == 5
    assert f"127.0.0.1:{port}" in done.err


def test_an_unformatted_directory_is_refused_and_not_changed(tmp_path: Path) -> None:
    done = run_apart("start", write_config(tmp_path, free_port()))
    assert done.code == 3
    assert "format" in done.err and str(tmp_path / "data") in done.err
    assert not (tmp_path / "data").exists() or tree(tmp_path / "data") == {}


def test_a_half_formatted_directory_is_refused_and_not_changed(tmp_path: Path) -> None:
    config = formatted(tmp_path, free_port())
    (tmp_path / "data" / "meta.properties").unlink()
    before = tree(tmp_path / "data")
    done = run_apart("start", config)
    assert (done.code, tree(tmp_path / "data")) == (3, before)
    assert str(tmp_path / "data") in done.err


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    formatted(tmp_path, free_port())
    done = run_apart("start", write_config(tmp_path, free_port(), node__id="2"))
    assert done.code == 3
    assert "node" in done.err and "2" in done.err


def test_a_used_port_and_a_locked_directory_have_exit_codes(tmp_path: Path) -> None:
    port = free_port()
    config = formatted(tmp_path, port)
    with started(config):
        done = run_apart("start", config)
        assert done.code == 4
        assert f":{port}" in done.err
        other_port = f"listeners=CONTROLLER://127.0.0.1:{free_port()}"
        locked = run_apart("start", config, "--override", other_port)
        assert locked.code == 4
        assert str(tmp_path / "data") in locked.err


def test_a_full_disk_ends_the_start_which_works_once_there_is_space(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=256k") as small:
        config = formatted(tmp_path, free_port(), log__dirs=f"{small}/data")
        filler = fill(small)
        done = run_apart("start", config)
        assert done.code == 1
        assert f"{small}/data" in done.err and "No space left" in done.err
        filler.unlink()
        with started(config) as (process, _):
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


def test_a_read_only_disk_ends_the_start(tmp_path: Path) -> None:
    with mounted(tmp_path / "fixed", "size=256k") as fixed:
        config = formatted(tmp_path, free_port(), log__dirs=f"{fixed}/data")
        subprocess.run(["mount", "-o", "remount,ro", str(fixed)], check=True)
        done = run_apart("start", config)
        assert done.code == 1
        assert f"{fixed}/data" in done.err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("num.partitoins=3", "did you mean num.partitions?"),
        ("listeners=CONTROLER://:0", "did you mean CONTROLLER?"),
        ("num.partitions=x", "must be a whole number"),
        ("nonsense", "must be key=value"),
    ],
)
def test_a_misspelt_key_ends_the_start_with_a_suggestion(tmp_path: Path, override: str, message: str) -> None:
    done = run("start", write_config(tmp_path), "--override", override)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_help_names_every_command_and_exit_code() -> None:
    done = run("--help")
    assert done.code == 0
    for word in ("format", "start", "dump", "quorum", "random-uuid", "version", "Exit codes"):
        assert word in done.out


def test_no_command_is_a_usage_error() -> None:
    assert run().code == 2
    assert run("no-such-command").code == 2


def test_random_ids_differ_and_never_begin_with_a_dash() -> None:
    ids = {run("random-uuid").out.strip() for _ in range(200)}
    assert len(ids) == 200
    assert not any(text.startswith("-") for text in ids)
    assert {len(text) for text in ids} == {22}


def test_the_package_runs_as_a_module() -> None:
    assert command()[1:] == ["-m", "kraftd"]
    assert run_apart("version").out.startswith("kraftd ")


def test_help_and_start_import_few_modules(tmp_path: Path) -> None:
    probe = (
        "import sys, click; from kraftd.cli.main import kraftd\n"
        "kraftd.get_command(click.Context(kraftd), 'start')\n"
        "print(*sorted(m for m in sys.modules if not m.startswith('_')))"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    for heavy in (
        "rich.console",
        "uvloop",
        "asyncio",
        "structlog",
        "kraftd.metadata.image",
        "kraftd.cli.brokers.groups",
    ):
        assert heavy not in loaded.split(), heavy


@pytest.mark.parametrize(
    "place",
    [
        "class Field:\n    def __set_name__(self, *_): stop()\nclass Stack:\n    field = Field()",
        "class Garbage:\n    def __del__(self): stop()\nGarbage()",
    ],
)
def test_a_stop_during_imports_ends_the_start_cleanly(place: str) -> None:
    code = (
        "import os, signal\nfrom kraftd.cli.start import signal_stops\nsignal_stops()\n"
        f"def stop(): signal.raise_signal(signal.SIGTERM)\n{place}\nos._exit(7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_node_whose_directory_holds_lost_records_exits(tmp_path: Path) -> None:
    """Its checkpoint ends beyond the log of the quorum, as after a recovery from a copy that was behind."""
    port = free_port()
    leads = formatted(tmp_path, port)
    (tmp_path / "ahead").mkdir()
    address = f"127.0.0.1:{port}"
    ahead = write_config(
        tmp_path / "ahead", free_port(), node__id="2", controller__quorum__bootstrap__servers=address
    )
    assert run("format", "-c", ahead, "-t", CLUSTER, "--no-initial-controllers").code == 0
    partition = tmp_path / "ahead" / "data" / "__cluster_metadata-0"
    partition.mkdir(exist_ok=True)
    state = {"leaderId": -1, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1}
    (partition / "quorum-state").write_text(json.dumps(state))
    with started(leads):
        checkpoint = Path(run_apart("snapshot", leads).out.split()[0])
        (partition / "00000000000000999999-0000000001.checkpoint").write_bytes(checkpoint.read_bytes())
        ended = run_apart("start", ahead)
    assert ended.code == 3
    assert "run kraftd quorum discard on this node" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("key", ["controller.quorum.voters", "controller.quorum.bootstrap.servers"])
def test_an_announced_ipv6_address_has_brackets(tmp_path: Path, key: str) -> None:
    port = free_port()
    value = f"1@[::1]:{port}" if key.endswith("voters") else f"[::1]:{port}"
    keys = {"controller.quorum.bootstrap.servers": None, key: value}
    file = write_config(tmp_path, port, listeners=f"CONTROLLER://[::1]:{port}", **keys)
    config = load(str(file))
    text = announcement(config, CLUSTER, config.advertised_listeners)
    assert f"  {key}={value}\n" in text
    assert own_voter(config) == f"1@[::1]:{port}"


@pytest.mark.parametrize("at", ["127.0.0.1:9092", "a-host-with-a-name-of-some-length.example:19092"])
def test_the_comment_of_the_first_trial_stands_right_of_all_three(at: str) -> None:
    _, *commands = trials(at)
    written, comment, rest = commands[0].partition("#")
    assert comment and "record" in rest
    assert len(written) == max(map(len, commands[1:])) + 2
