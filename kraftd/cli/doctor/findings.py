"""A finding: where it is, how bad it is, what was seen, and what to do."""

from __future__ import annotations

from enum import StrEnum

from kraftd.named_tuple import NamedTuple


class Level(StrEnum):
    """PROBLEM and WARNING are wrong; NOTE is worth knowing, or could not be found out."""

    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"


class Finding(NamedTuple):
    """`area` is the kind of check, `subject` the file, address or node; `remedy` may be empty."""

    area: str
    level: Level
    subject: str
    text: str
    remedy: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.level in (Level.PROBLEM, Level.WARNING)


def ok(area: str, subject: str, text: str) -> Finding:
    return Finding(area, Level.OK, subject, text)


def note(area: str, subject: str, text: str, remedy: str = "") -> Finding:
    return Finding(area, Level.NOTE, subject, text, remedy)


def warning(area: str, subject: str, text: str, remedy: str) -> Finding:
    return Finding(area, Level.WARNING, subject, text, remedy)


def problem(area: str, subject: str, text: str, remedy: str) -> Finding:
    return Finding(area, Level.PROBLEM, subject, text, remedy)


def replace_log(broker: str) -> str:
    """What to do about a log that a broker cannot use; `broker` is the word for that one."""
    return (
        f"stop {broker}, move the partition's directory aside or restore its files, and start {broker}: it "
        "fetches what it lacks, if another replica has that"
    )
