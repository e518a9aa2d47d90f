"""Lines of the daemon's log."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any

import pytest

from kraftd.runtime.reporting.logs import DaemonLog, configure

STAMP = re.compile(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$")


def raised() -> Exception:
    try:
        raise KeyError("a")
    except KeyError as error:
        return error


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_has_its_fields_first_and_its_time_last(lines: Any) -> None:
    configure("json", "info", 7).warning("stopping", why="SIGTERM", of=frozenset({1}))
    (line,) = lines()
    assert list(line) == ["why", "of", "event", "node", "level", "timestamp"]
    assert STAMP.match(line.pop("timestamp"))
    assert line == {"why": "SIGTERM", "of": [1], "event": "stopping", "node": 7, "level": "warning"}


def test_fields_name_another_node_and_hold_any_value(lines: Any) -> None:
    configure("json", "info", 7).info("joined", node=8, by=ValueError("x"))
    (line,) = lines()
    assert (line["node"], line["by"]) == (8, "ValueError('x')")


def test_an_exception_is_a_traceback_at_the_end(lines: Any) -> None:
    log = configure("json", "info", 7)
    log.error("failed", exc_info=raised())
    log.error("failed", exc_info=None)
    traced, bare = lines()
    assert list(traced)[-1] == "exception"
    assert traced["exception"].startswith("Traceback (most recent call last):\n")
    assert traced["exception"].endswith("KeyError: 'a'")
    assert "exception" not in bare and "exc_info" not in bare


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        ("trace", ["debug", "info", "warning", "error", "critical"]),
        ("INFO", ["info", "warning", "error", "critical"]),
        ("WARN", ["warning", "error", "critical"]),
        ("FATAL", ["critical"]),
    ],
)
def test_a_level_leaves_out_what_is_below_it(level: str, logged: list[str], lines: Any) -> None:
    log = configure("json", "error", 7)
    log.set_level(level)
    for name in ("debug", "info", "warning", "error", "critical"):
        getattr(log, name)("an event")
    assert [line["level"] for line in lines()] == logged


def test_a_console_gets_words(capsys: pytest.CaptureFixture[str]) -> None:
    configure("console", "info", 7).error("failed", why="x", exc_info=raised())
    first, *trace = capsys.readouterr().err.splitlines()
    assert re.match(r"20\S+Z +\[error +\] failed +node=7 why=x$", first)
    assert trace[0] == "Traceback (most recent call last):"
    assert trace[-1] == "KeyError: 'a'"


def test_a_reader_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    log: DaemonLog = configure("json", "info", 7)
    log.info("an event")
