"""Options of several commands, and their evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraftd.metadata_dir.in_use import lock_holder
from kraftd.spark.checkpoints import read_header
from kraftd.spark.errors import InputError
from kraftd.spark.layout import Replica, find_replicas
from kraftd.spark.replicas import CommittedLog, committed_log
from kraftd.spark.timeline import Timeline


def input_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--input, --mode, --high-watermark and --master."""
    decorators = (
        click.option(
            "--input",
            "inputs",
            multiple=True,
            required=required,
            metavar="DIR",
            help="A controller's metadata.log.dir, or a copy of it, here or on object storage. Repeat it "
            "for each replica: several replicas prove which records are committed.",
        ),
        click.option(
            "--mode",
            type=click.Choice(["failfast", "permissive"], case_sensitive=False),
            default="failfast",
            show_default=True,
            help="On damage: stop, or write what cannot be decoded to the table `damaged`.",
        ),
        click.option(
            "--high-watermark",
            type=click.IntRange(0),
            metavar="OFFSET",
            help="The first offset that is not committed, if you know it.",
        ),
        click.option("--master", metavar="URL", help="The URL of Spark's master.  [default: local[*]]"),
    )

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return decorated


def find_log(
    inputs: Sequence[str], mode: str, high_watermark: int | None
) -> tuple[list[Replica], CommittedLog]:
    """The replicas and their committed log; notes for the user go to stderr."""
    replicas = find_replicas(inputs)
    log = committed_log(replicas, permissive=mode == "permissive", high_watermark=high_watermark)
    for note in notes_of(replicas, log):
        print_note(note)
    return replicas, log


def notes_of(replicas: Sequence[Replica], log: CommittedLog) -> list[str]:
    """Notes for the user about the input, which are no faults of the records read."""
    notes = list(log.notes)
    for replica in replicas:
        process = lock_holder(replica.path)
        if process is not None:
            end = f"what is written from offset {log.end_offset} on is not read"
            notes.append(f"{replica.path}: in use by process {process}; {end}")
    return notes


def make_timeline(session: SparkSession, log: CommittedLog, as_of: str | None, mode: str) -> Timeline:
    """The timeline up to and including an offset or a time. Raises InputError for one before the log."""
    end = log.end_offset
    timeline = Timeline(session, log, end, permissive=mode == "permissive")
    if as_of is None:
        return timeline
    offset = int(as_of) if as_of.isdecimal() else _offset_at(timeline, as_of)
    if offset >= end:
        print_note(f"--as-of {as_of}: the log is committed to offset {end - 1}, that is what is read")
    if offset < timeline.first_state_offset:
        raise _too_early(timeline, as_of)
    return Timeline(session, log, min(end, offset + 1), permissive=mode == "permissive")


def _too_early(timeline: Timeline, as_of: str) -> InputError:
    return InputError(
        f"{timeline.source.replica.path}: --as-of {as_of} lies before offset {timeline.first_state_offset}, "
        "the first at which the log and its oldest checkpoint tell the state"
    )


def _offset_at(timeline: Timeline, text: str) -> int:
    """The last offset before the first record that is later than a time.

    Raises InputError for a time before the end of the first checkpoint.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--as-of {text}: neither an offset nor a time such as 2026-03-01T03:12:00+00:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    limit_ms = (moment - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
    if timeline.first_checkpoint is not None:
        known_ms = read_header(timeline.first_checkpoint).last_contained_log_timestamp_ms
        if known_ms is not None and limit_ms < known_ms:
            raise _too_early(timeline, text)
    if not timeline.source.replica.segments:
        return timeline.end_offset - 1
    later = timeline.log(["offset", "timestamp_ms"]).where(F.col("timestamp_ms") > limit_ms)
    found = later.agg(F.min("offset")).first()
    if found is None or found[0] is None:
        return timeline.end_offset - 1
    offset = int(found[0]) - 1
    print_note(f"--as-of {text} is " + ("before the first record" if offset < 0 else f"offset {offset}"))
    return offset


def print_note(text: str) -> None:
    """A line on stderr."""
    click.echo(f"kraftd-spark: {text}", err=True)


class Progress:
    """Reports the duration of each step."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._since = time.monotonic()

    def step(self, name: str) -> None:
        """One more step is done."""
        now = time.monotonic()
        self._done += 1
        print_note(f"[{self._done}/{self._steps}] {name} ({now - self._since:.1f} s)")
        self._since = now
