"""The audit stream: JSON lines as configured; the daemon continues if it cannot write them."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kraftd.config.errors import ConfigError
from kraftd.requests.effects import AuditLine, Caller
from kraftd.runtime.reporting.audit_stream import KEPT_EVENTS, AuditStream
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey

NOW_MS = 1_795_331_797_959
DELETED = AuditLine(
    "topics deleted",
    48_123,
    {"count": 1, "topics": "a"},
    Caller(Principal("User", "alice"), "adminclient-1", "10.0.0.7", int(ApiKey.DELETE_TOPICS)),
)
REFUSED = AuditLine("node refused", -1, {"from_node": 7})


class Log:
    """Keeps the errors that are logged."""

    def __init__(self) -> None:
        self.errors: list[dict[str, Any]] = []

    def error(self, _text: str, **fields: Any) -> None:
        self.errors.append(fields)


def test_control_characters_of_names_are_escaped(tmp_path: Path) -> None:
    """A terminal that shows the file must not obey them; JSON allows those above 31 as they are."""
    name = "User:\x1b[31m\x9b2J\x7f\u202e\u2028ü"
    stream = AuditStream(str(tmp_path / "audit"), 3, Log())
    stream.write(AuditLine("authentication failed", -1, {"principal": name}), NOW_MS)
    stream.close()
    text = (tmp_path / "audit").read_text()
    assert json.loads(text)["principal"] == name
    assert not set(text) & set("\x1b\x9b\x7f\u202e\u2028") and "ü" in text


def test_each_event_has_a_line_with_time_node_offset_and_principal(tmp_path: Path) -> None:
    stream = AuditStream(str(tmp_path / "audit"), 3, Log())
    stream.write(DELETED, NOW_MS)
    stream.write(REFUSED, NOW_MS)
    deleted, refused = map(json.loads, (tmp_path / "audit").read_text().splitlines())
    stream.close()
    assert deleted == {
        "timestamp": "2026-11-22T07:16:37.959Z",
        "event": "topics deleted",
        "timestamp_ms": NOW_MS,
        "node": 3,
        "count": 1,
        "topics": "a",
        "principal": "User:alice",
        "client_id": "adminclient-1",
        "host": "10.0.0.7",
        "api": "DELETE_TOPICS",
        "end_offset": 48_123,
    }
    assert refused["from_node"] == 7 and "end_offset" not in refused and "principal" not in refused


def test_after_a_rotation_a_new_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.write_text('{"event":"of yesterday"}\n')
    stream = AuditStream(str(path), 3, Log())
    stream.write(DELETED, NOW_MS)
    path.rename(tmp_path / "rotated")
    stream.write(REFUSED, NOW_MS)
    stream.reopen()
    stream.write(REFUSED, NOW_MS)
    stream.close()
    assert len((tmp_path / "rotated").read_text().splitlines()) == 3
    assert len(path.read_text().splitlines()) == 1


@pytest.mark.parametrize(("target", "count"), [("", 0), ("stderr", 1)])
def test_off_writes_nothing_and_stderr_writes_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: str, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stderr", out)
    stream = AuditStream(target, 3, Log())
    stream.reopen()
    stream.write(DELETED, NOW_MS)
    assert out.buffer.getvalue().count(b"topics deleted") == count  # type: ignore[attr-defined]
    assert os.listdir(tmp_path) == []
    assert [event["text"] for event in stream.recent()] == ["topics deleted: count 1, topics a"]


def test_the_status_page_gets_the_last_hundred_events() -> None:
    stream = AuditStream("", 3, Log())
    for at in range(KEPT_EVENTS + 5):
        stream.write(REFUSED, at)
    assert [event["timestamp_ms"] for event in stream.recent()] == list(range(5, 105))


def test_a_stream_that_cannot_be_written_is_logged_once_until_it_can_be(tmp_path: Path) -> None:
    path, log = tmp_path / "pipe", Log()
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    stream = AuditStream(str(path), 3, log)
    while not log.errors:
        stream.write(DELETED, NOW_MS)
    stream.write(DELETED, NOW_MS)
    assert [error["to"] for error in log.errors] == [str(path)]
    before = os.read(reader, 1 << 20)
    stream.write(REFUSED, NOW_MS)
    last = (before + os.read(reader, 1 << 16)).splitlines()[-1]  # after a torn line it begins another
    assert json.loads(last)["event"] == "node refused" and len(log.errors) == 1
    os.close(reader)
    for _ in range(2):
        stream.write(REFUSED, NOW_MS)
    assert len(log.errors) == 2
    stream.close()


class FullDisk(io.BytesIO):
    """Writes the first half of one line, and then whole lines."""

    def write(self, data: Any) -> int:
        half = len(data) // 2 if not self.getvalue() else len(data)
        return super().write(bytes(data[:half]))


def test_after_a_torn_line_the_next_event_begins_a_new_line(tmp_path: Path) -> None:
    stream = AuditStream(str(tmp_path / "audit"), 3, Log())
    stream.close()
    stream._file = disk = FullDisk()
    for _ in range(3):
        stream.write(REFUSED, NOW_MS)
    torn, *whole = disk.getvalue().splitlines()
    assert torn.startswith(b'{"timestamp"') and not torn.endswith(b"}")
    assert [json.loads(line)["event"] for line in whole] == ["node refused"] * 2


def test_a_file_that_cannot_be_opened_is_reported_with_a_remedy(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "nowhere" / "audit"):
        with pytest.raises(ConfigError, match=r"kraftd.audit.log=.*cannot be opened: .*name a file that"):
            AuditStream(str(target), 3, Log())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="no process reads this pipe"):
        AuditStream(str(tmp_path / "pipe"), 3, Log())


class Broken:
    """The subject of an event whose fields cannot be made."""

    def fields(self) -> dict[str, Any]:
        raise ZeroDivisionError("planted")


def test_an_event_that_cannot_be_written_as_a_line_costs_that_line_alone(tmp_path: Path) -> None:
    log = Log()
    stream = AuditStream(str(tmp_path / "audit"), 3, log)
    stream.write(AuditLine("partitions changed", 7, Broken()), NOW_MS)
    stream.write(DELETED, NOW_MS)
    stream.close()
    (fields,) = log.errors
    assert fields["what"] == "partitions changed" and isinstance(fields["exc_info"], ZeroDivisionError)
    (line,) = (tmp_path / "audit").read_text().splitlines()
    assert json.loads(line)["event"] == "topics deleted"
