"""The texts of the commands for records and groups, without a cluster."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from kraftd.client import producer
from kraftd.history.points import parse_time
from tests.cli.run import run

NOON_S = 1_700_000_000.0


class Taken:
    """A producer that takes every record."""

    def __init__(self, cluster: Any, topic: str) -> None:
        self.topic = topic

    async def partition_count(self) -> int:
        return 1

    async def send(self, records: list[Any], partition: int | None) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("lines", "said"),
    [("", "0 records"), ("a\n", "1 record"), ("a\nb\n", "2 records"), ("a\n" * 1_001, "1,001 records")],
)
def test_produce_counts_the_records_that_it_wrote(
    monkeypatch: pytest.MonkeyPatch, lines: str, said: str
) -> None:
    monkeypatch.setattr(producer, "Producer", Taken)
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    done = run("produce", "orders")
    assert (done.code, done.err) == (0, f"{said} written to orders.\n")


@pytest.mark.parametrize("text", ["yesterday", "4711", "now", "", "20261122", "2026-13-01", "-1", "2 h"])
def test_reset_names_the_forms_of_a_time(text: str) -> None:
    done = run("groups", "reset", "readers", "--to-time", text)
    assert done.code == 2
    for form in ("2026-11-22", "2026-11-22T06:51", "2026-11-22T06:51:05+02:00", "45s", "10m", "2h", "1d12h"):
        assert form in done.err
    assert "offset" not in done.err and repr(text) in done.err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7_200), ("1d12h", 129_600), ("45s", 45), (" 10m ", 600), ("2023-11-14T22:13:20", 0)],
)
def test_a_time_may_be_an_age(text: str, seconds: int) -> None:
    assert parse_time(text, NOON_S) == (NOON_S - seconds) * 1000


def test_a_time_in_the_future_is_refused() -> None:
    with pytest.raises(ValueError, match="in the future"):
        parse_time("2023-11-14T22:13:21Z", NOON_S)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"t,0\n", "line 1: t,0 is not topic,partition,offset"),
        (b"t,0,5\ng,t,1,5\n", "line 2: g,t,1,5 is not topic,partition,offset"),
        (b"t,0,5\nt, 0, 6\r\n", "line 2: t,0 is there twice"),
        (b"\xff\xfe,0,5\n", "line 1: it is not text in UTF-8"),
        (b"\n", "it names no partition"),
    ],
)
def test_a_line_of_a_file_that_is_no_offset_is_shown(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_bytes(content)
    done = run("groups", "reset", "readers", "--from-file", str(path))
    assert done.code == 2 and said in done.err
