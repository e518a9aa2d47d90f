"""The daemon's log: lines for a console or JSON, on standard error."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

# structlog imports rich for a form of tracebacks that is unused here; that takes a fifth of the start's time.
_RICH = "rich"
_hides_rich = _RICH not in sys.modules
if _hides_rich:
    sys.modules[_RICH] = None  # type: ignore[assignment]
import structlog  # noqa: E402

if _hides_rich:
    del sys.modules[_RICH]

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


class _Stderr:
    """Standard error; if its reader is gone, the controller continues."""

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()


def configure(format: str, level: str, node_id: int) -> DaemonLog:
    """Set up structlog: `format` is console, json or auto (console on a terminal); the daemon's logger."""
    if format == "auto":
        format = "console" if sys.stderr.isatty() else "json"

    def name_node(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
        event.setdefault("node", node_id)  # not a context variable: threads do not share the loop's
        return event

    processors: list[Any] = [
        name_node,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if format == "json":
        processors += [structlog.processors.format_exc_info, _render_json]
    else:
        processors.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        )
    structlog.configure(
        processors=processors,
        logger_factory=structlog.WriteLoggerFactory(file=_Stderr()),  # type: ignore[arg-type]
    )
    return DaemonLog(level)


class DaemonLog:
    """The daemon's logger, whose level changes while it runs."""

    def __init__(self, level: str) -> None:
        self.set_level(level)

    def set_level(self, level: str) -> None:
        """Leave out what is below a level: one of LEVELS, or one of Kafka's, in any case."""
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level.lower()]))
        bound = structlog.get_logger().bind()
        self.debug, self.info, self.warning = bound.debug, bound.info, bound.warning
        self.error, self.critical = bound.error, bound.critical


def _render_json(_logger: Any, _method: str, event: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.encode(event, enc_hook=repr).decode()
