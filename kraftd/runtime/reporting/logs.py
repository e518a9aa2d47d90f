"""The daemon's log: lines for a console or JSON, on standard error.

structlog makes the lines for a console, and is loaded for them alone: that takes a twentieth of a start.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

LEVELS = {
    "trace": 10,
    "debug": 10,
    "info": 20,
    "warning": 30,
    "warn": 30,
    "error": 40,
    "critical": 50,
    "fatal": 50,
}

KAFKAS_LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}  # by kraftd.log.level

Line = dict[str, Any]


def configure(format: str, level: str, node_id: int) -> DaemonLog:
    """The daemon's logger; `format` is console, json or auto (console on a terminal)."""
    if format == "auto":
        format = "console" if sys.stderr.isatty() else "json"
    return DaemonLog(level, node_id, render_json if format == "json" else console_renderer())


class DaemonLog:
    """The daemon's logger, whose level changes while it runs."""

    def __init__(self, level: str, node_id: int, render: Callable[[Line], str]) -> None:
        self._node_id = node_id
        self._render = render
        self.set_level(level)

    def set_level(self, level: str) -> None:
        """Leave out what is below a level: one of LEVELS, or one of Kafka's, in any case."""
        self._least = LEVELS[level.lower()]

    def debug(self, event: str, **fields: Any) -> None:
        self._log("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._log("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._log("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._log("error", event, fields)

    def critical(self, event: str, **fields: Any) -> None:
        self._log("critical", event, fields)

    def _log(self, level: str, event: str, fields: Line) -> None:
        if LEVELS[level] < self._least:
            return
        line = {**fields, "event": event}
        line.setdefault("node", self._node_id)
        line["level"] = level
        line["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        text = self._render(line)
        with suppress(OSError, ValueError):  # its reader is gone: the daemon continues
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def __repr__(self) -> str:
        return f"<DaemonLog of node {self._node_id}, from level {self._least}>"


def render_json(line: Line) -> str:
    """A line of JSON, with the traceback of an exception at its end."""
    import msgspec

    error = line.pop("exc_info", None)
    if error is not None:
        line["exception"] = "".join(traceback.format_exception(error)).rstrip("\n")
    return msgspec.json.encode(line, enc_hook=repr).decode()


def console_renderer() -> Callable[[Line], str]:
    """What makes a line for people, in colours on a terminal."""
    # structlog imports rich for a form of tracebacks that is unused here. That import takes the most time.
    hides_rich = "rich" not in sys.modules
    if hides_rich:
        sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog.dev

    if hides_rich:
        del sys.modules["rich"]
    render = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return lambda line: str(render(None, line["level"], line))
