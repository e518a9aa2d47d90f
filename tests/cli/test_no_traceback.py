"""Every command line and file content leads to output or an error message and an exit code, no traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.cli.failures import EXIT_CODES
from kraftd.cli.main import kraftd
from tests.cli.run import Run, commands_of, run, run_apart, write_config
from tests.cli.sample_history import write_history

# KRAFTD_FUZZ: a factor for the number of examples.
TIMES = int(os.environ.get("KRAFTD_FUZZ", "1"))
LINES, FILES = 60 * TIMES, 12 * TIMES
CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
# These run until they are stopped, or take long by design.
LASTING = ("start", "container", "sim", "watch")
NASTY = tuple(
    f"|-1|nan|inf|1e300|0|{'9' * 20}|\x00|a\x00b|\ud800|ä|..|/|127.0.0.1:1|[::1]:1|:|a:b|{'x' * 300}:1|..:1|"
    f"{'a' * 64}.b:1|2026-13-01|now|/etc|/etc/hostname|/dev/null|/nowhere|1|topics/byName/*|[|[a-|10m|"
    f"{'1d' * 40}|1@h:1:x|99999999999@h:1:{CLUSTER_ID}|metadata.version=30|SCRAM-SHA-256=[name=a]|"
    f"{CLUSTER_ID}".split("|")
)


def checked(done: Run) -> Run:
    """Check that a run ended without a traceback and with a documented exit code; return it."""
    assert done.code in EXIT_CODES, done
    assert "Traceback" not in done.err and "Unexpected error" not in done.err, done
    assert done.code == 0 or done.err.strip() or done.out.strip(), done  # doctor's findings are its output
    return done


def options(command: click.Command) -> list[str]:
    return [
        name for one in command.params for name in one.opts if name.startswith("-") and name != "--timeout"
    ]


def commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command that ends by itself, with its words."""
    for name, command in commands_of(group).items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        elif name not in LASTING:
            yield (*words, name), command


COMMANDS = dict(commands(kraftd))


def words_of(start: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    """Return words of a command line: options of the command with values, and arbitrary words."""
    command = COMMANDS[start]
    word = st.sampled_from(NASTY) | st.text(max_size=8)
    pair = st.tuples(st.sampled_from(options(command) or ["-h"]), word).map(list)
    more = st.lists(pair | word.map(lambda one: [one]), max_size=4)
    timeout = next((one.type for one in command.params if "--timeout" in one.opts), None)
    quick = [] if timeout is None else ["--timeout", "1" if isinstance(timeout, click.IntRange) else "0.05"]
    return more.map(lambda parts: [*start, *quick, *(one for part in parts for one in part)])


def test_an_impossible_path_is_a_usage_error() -> None:
    for path in ("\ud800", "a\x00b"):
        assert checked(run("dump", path)).code == 2


@settings(max_examples=LINES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=st.sampled_from(sorted(COMMANDS)).flatmap(words_of))
def test_no_command_line_prints_a_traceback(words: Sequence[str]) -> None:
    checked(run(*words))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_history(tmp_path_factory.mktemp("fuzzed") / "data")


@settings(max_examples=FILES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_bytes_in_a_directorys_files_print_a_traceback(directory: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(one for one in directory.rglob("*") if one.is_file())))
    sound = path.read_bytes()
    broken = bytearray(sound)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(len(broken) - 1, 0)))
        piece = data.draw(
            st.binary(max_size=8) | st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xef\xbb\xbf"])
        )
        broken[at : at + data.draw(st.integers(0, 8))] = piece
    try:
        path.write_bytes(broken)
        for words in (
            ("show", "/", "-d", directory, "--json"),
            ("history", "-d", directory),
            ("dump", directory),
            ("dump", "--verify", directory),
            ("topics", "-d", path),
        ):
            checked(run(*words))
    finally:
        path.write_bytes(sound)


@settings(max_examples=LINES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(lambda one: one.encode("utf-8", "replace")))
def test_no_configuration_file_prints_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("config")
    config = write_config(folder)
    config.write_bytes(config.read_bytes() + content)
    checked(run("format", "-c", config, "-t", CLUSTER_ID, "--standalone"))


def test_a_directory_with_a_nul_in_its_name_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path, log__dirs=f"{tmp_path}/a\\u0000b")
    done = checked(run("format", "-c", config, "-t", CLUSTER_ID, "--standalone"))
    assert done.code == 2 and "NUL" in done.err


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "1e300", "soon"])
def test_a_timeout_must_be_a_number_of_seconds(seconds: str) -> None:
    done = checked(run("quorum", "describe", "--bootstrap", "127.0.0.1:1", "--timeout", seconds))
    assert done.code == 2 and "is no number of seconds above 0" in done.err


def test_an_id_beyond_int32_is_refused() -> None:
    words = ("--bootstrap", "127.0.0.1:1", "-i", 1 << 31, "-d", CLUSTER_ID)
    assert checked(run("quorum", "remove-controller", *words)).code == 2


def test_an_unknown_codec_engine_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kraftd", "version"],
        env={**os.environ, "KRAFTD_CODEC": "rust"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("KRAFTD_CODEC=rust: there is no such codec engine")
    assert done.stderr.count("\n") == 1


def test_too_few_file_descriptors_are_reported(tmp_path: Path) -> None:
    write_history(tmp_path / "data")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (7, 7))  # noqa: E731
    done = subprocess.run(
        [sys.executable, "-m", "kraftd", "show", "-d", str(tmp_path / "data")],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "Allow this process more open files" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("files", [6, 9, 14, 63])
def test_a_start_with_too_few_file_descriptors_names_the_number_it_needs(tmp_path: Path, files: int) -> None:
    config = write_config(tmp_path)
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    done = subprocess.run(
        [sys.executable, "-m", "kraftd", "start", str(config)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"This process may have {files} files open"), done.stderr


def test_version_and_its_short_option_print_the_version() -> None:
    assert run("--version") == run("version")


def test_a_name_that_the_terminal_cannot_show_is_shown_escaped() -> None:
    done = run_apart("show", "-d", "/no\udcffwhere")
    assert done.code == 1 and "Traceback" not in done.err and "there is no such file" in done.err
