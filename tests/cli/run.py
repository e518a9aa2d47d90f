"""Runs the command line in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from kraftd.cli.main import main


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name."""
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


class Run(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def run(*arguments: object) -> Run:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Run(code, out.getvalue(), err.getvalue())


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "kraftd", *map(str, arguments)]


def run_apart(*arguments: object, timeout_s: float = 60) -> Run:
    """Run a command as a process."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False)
    return Run(done.returncode, done.stdout, done.stderr)


def write_config(folder: Path, port: int = 0, **changes: str | None) -> Path:
    """Write a controller's configuration file; __ in names of keys is a dot, and None leaves a key out."""
    keys: dict[str, str | None] = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
        "log.dirs": str(folder / "data"),
        **{name.replace("__", "."): text for name, text in changes.items()},
    }
    path = folder / "controller.properties"
    path.write_text("".join(f"{key}={text}\n" for key, text in keys.items() if text is not None))
    return path


@contextlib.contextmanager
def started(config: Path, *more: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running daemon and its announcement; the daemon is stopped at the end."""
    process = subprocess.Popen(
        command("start", config, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process, announcement(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def announcement(process: subprocess.Popen[str], timeout_s: float = 30) -> str:
    """Return the four lines that a starting daemon prints; AssertionError with its standard error."""
    assert process.stdout is not None and process.stderr is not None
    output = b""
    while output.count(b"\n") < 4:
        ready, _, _ = select.select([process.stdout], [], [], timeout_s)
        part = os.read(process.stdout.fileno(), 4096) if ready else b""
        assert part, process.stderr.read() if ready else "no announcement in time"
        output += part
    return output.decode()


def tree(folder: Path) -> Mapping[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {os.path.relpath(path, folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory; the test is skipped if this user may not mount one."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this user may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write a file that fills a file system."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))
    return filler
