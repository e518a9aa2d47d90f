"""The audit stream: committed changes and refusals as JSON lines, in a file or on standard error."""

from __future__ import annotations

import errno
import os
import sys
from collections import deque
from datetime import UTC, datetime
from typing import Any, BinaryIO

import msgspec

from kraftd.config.errors import ConfigError
from kraftd.control_characters import visible_json
from kraftd.requests.effects import AuditLine

OFF = ""
STDERR = "stderr"
REMEDY = "name a file that this user may write"
KEPT_EVENTS = 100  # for the status page


class AuditStream:
    """`target` is "" (off), "stderr" or a path. A failure to write is logged once, and the daemon goes on.

    Raises ConfigError when the file cannot be opened.
    """

    def __init__(self, target: str, node_id: int, log: Any) -> None:
        self._recent: deque[tuple[AuditLine, int]] = deque(maxlen=KEPT_EVENTS)  # each with its time in ms
        self._target = target
        self._node_id = node_id
        self._log = log
        self._failed = False
        self._is_torn = False  # a part of the last line only was written
        self._file: BinaryIO | None = None
        try:
            self.reopen()
        except OSError as error:
            remedy = "no process reads this pipe: start that first" if error.errno == errno.ENXIO else REMEDY
            why = f"it cannot be opened: {error.strerror}; {remedy}"
            raise ConfigError([f"kraftd.audit.log={target}: {why}"]) from error

    def reopen(self) -> None:
        """Open the file anew, as after a rotation. Raises OSError."""
        if self._target not in (OFF, STDERR):
            before = self._file
            self._file = open(self._target, "ab", buffering=0, opener=_open_without_waiting)  # noqa: SIM115
            if before is not None:
                before.close()

    def write(self, effect: AuditLine, now_ms: int, *, shown: bool = True) -> None:
        """Write an event. It has happened, so a fault here is logged, and costs its line alone. The status
        page shows it if it is `shown`.
        """
        if shown:
            self._recent.append((effect, now_ms))
        if self._target == OFF:
            return
        try:
            line = self._line(effect, now_ms)
        except Exception as error:
            self._log.error("an event could not be audited", what=effect.event, exc_info=error)
            return
        try:
            if self._file is not None:
                self._put(line)
            else:
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._failed = True
                self._log.error("the audit stream cannot be written", to=self._target, error=str(error))

    def _line(self, effect: AuditLine, now_ms: int) -> bytes:
        event = self._event(effect, now_ms)
        at = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"timestamp": at.replace("+00:00", "Z"), **event})
        return visible_json(line) + b"\n"

    def _put(self, line: bytes) -> None:
        """Write a line to the file. Raises OSError, also for a pipe that is full, instead of waiting."""
        assert self._file is not None
        data = b"\n" + line if self._is_torn else line
        written = self._file.write(data)
        if written is None:
            raise OSError(errno.EAGAIN, "the process that reads this pipe is too slow, and lines are lost")
        self._is_torn = written < len(data)

    def recent(self) -> list[dict[str, Any]]:
        """The last events, oldest first, each with a sentence; made on demand of a page, not for
        each event.
        """
        return [{**self._event(effect, at_ms), "text": sentence(effect)} for effect, at_ms in self._recent]

    def _event(self, effect: AuditLine, now_ms: int) -> dict[str, Any]:
        event = {"event": effect.event, "timestamp_ms": now_ms, "node": self._node_id, **effect.fields}
        if effect.offset >= 0:
            event["end_offset"] = effect.offset
        return event

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __repr__(self) -> str:
        return f"<AuditStream to {self._target or 'nowhere'}>"


def sentence(effect: AuditLine) -> str:
    """The event as a line for the status page, without its caller."""
    by_caller = ("principal", "client_id", "host", "api", "incarnation_id")
    described = (f"{name} {_text(value)}" for name, value in effect.fields.items() if name not in by_caller)
    return f"{effect.event}: {', '.join(described)}"


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a path so that it never blocks: a pipe without a reader raises ENXIO, a full one EAGAIN; returns a
    descriptor.
    """
    return os.open(path, flags | os.O_NONBLOCK, 0o666)
