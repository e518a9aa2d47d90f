"""A pipe, a device or a directory in place of a file blocks no command and no daemon."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd import input_file
from kraftd.config import ConfigError, load
from kraftd.config.client_login import _read_token
from kraftd.config.providers import _read
from kraftd.input_file import read_input_file
from kraftd.log.disk import RealDisk
from kraftd.net.tls.stores import _read as read_store
from kraftd.runtime.reporting.audit_stream import AuditStream
from kraftd.security.sasl.mechanism import SaslFailed
from tests.cli.run import run


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pipe without a writer; commands wait only briefly for one."""
    monkeypatch.setattr(input_file, "WAIT_S", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return str(path)


@pytest.mark.parametrize(
    ("read", "raised"),
    [
        (load, ConfigError),
        (lambda path: _read(Path(path)), ValueError),
        (lambda path: read_store(path, "ssl.keystore.location"), ValueError),
        (lambda path: _read_token(f"file://{path}"), SaslFailed),
    ],
)
def test_a_pipe_without_a_writer_is_refused_wherever_a_file_is_read(
    pipe: str, read: Callable[[str], object], raised: type[Exception]
) -> None:
    with pytest.raises(raised, match="a pipe or a device"):
        read(pipe)


def test_a_pipe_that_another_process_writes_is_read_to_its_end(pipe: str) -> None:
    writer = threading.Thread(target=lambda: Path(pipe).write_bytes(b"node.id=1\n" * 20_000))
    writer.start()
    assert read_input_file(pipe, 1 << 20, wait_s=60) == b"node.id=1\n" * 20_000
    writer.join()


@pytest.mark.parametrize(("path", "why"), [("/dev/zero", "more than 1,000 bytes"), ("/", "Is a directory")])
def test_a_path_that_is_no_file_and_a_file_that_is_too_long_are_refused(path: str, why: str) -> None:
    with pytest.raises(OSError, match=why):
        read_input_file(path, 1_000)
    assert read_input_file("/dev/null", 1_000) == b""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("doctor", "--config"), 1),
        (("start",), 2),
        (("snapshot",), 2),
        (("quorum", "recover", "--config"), 2),
        (("quorum", "describe", "--bootstrap", "127.0.0.1:1", "--command-config"), 2),
    ],
)
def test_a_command_ends_at_a_pipe_without_a_writer(pipe: str, words: tuple[str, ...], code: int) -> None:
    done = run(*words, pipe)
    assert done.code == code
    assert "a pipe or a device" in " ".join((done.out + done.err).split())


def test_a_read_only_pipe_is_no_file_of_a_directory(pipe: str) -> None:
    os.chmod(pipe, 0o444)
    file = RealDisk()._open_for_reading(pipe)  # root may write it, other users cannot
    file.close()


class Log:
    """Keeps what a daemon logs."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, text: str, **fields: str) -> None:
        self.errors.append(f"{text}: {fields['error']}")


def test_an_audit_pipe_without_a_reader_is_refused_and_a_full_one_blocks_nothing(pipe: str) -> None:
    from kraftd.requests.effects import AuditLine

    log = Log()
    with pytest.raises(ConfigError, match=r"no process reads this pipe: start that first"):
        AuditStream(pipe, 1, log)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    stream = AuditStream(pipe, 1, log)
    line = AuditLine("topic created", 5, {"topic": "t" * 1_000})
    for _ in range(200):
        stream.write(line, 0)
    assert len(log.errors) == 1 and "is too slow, and lines are lost" in log.errors[0]
    while len(os.read(reader, 1 << 16)) == 1 << 16:
        pass
    stream.write(line, 0)
    received = os.read(reader, 1 << 16)
    assert received.strip().startswith(b"{") and received.endswith(b"}\n")
    stream.close()
    os.close(reader)
