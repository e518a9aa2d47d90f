"""Options that several commands have, and what they make of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraftd.spark.errors import InputError
from kraftd.spark.in_use import lock_holder
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
            help="A controller's metadata.log.dir, or a copy of it, here or on object storage; once for each "
            "replica. Several prove what is committed.",
        ),
        click.option(
            "--mode",
            type=click.Choice(["failfast", "permissive"], case_sensitive=False),
            default="failfast",
            show_default=True,
            help="At damage: stop, or keep what cannot be decoded in the table `damaged`.",
        ),
        click.option(
            "--high-watermark",
            type=click.IntRange(0),
            metavar="OFFSET",
            help="The first offset that is not committed, where it is known.",
        ),
        click.option("--master", metavar="URL", help="Spark's master.  [default: local[*]]"),
    )

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return decorated


def find_log(
    inputs: Sequence[str], mode: str, high_watermark: int | None
) -> tuple[list[Replica], CommittedLog]:
    """The replicas and their committed log; what a person should know of it goes to stderr."""
    replicas = find_replicas(inputs)
    log = committed_log(replicas, permissive=mode == "permissive", high_watermark=high_watermark)
    for note in log.notes:
        say(note)
    for replica in replicas:
        process = lock_holder(replica.path)
        if process is not None:
            end = f"what is written from offset {log.end_offset} on is not read"
            say(f"{replica.path}: in use by process {process}; {end}")
    return replicas, log


def make_timeline(session: SparkSession, log: CommittedLog, as_of: str | None, mode: str) -> Timeline:
    """The timeline up to and including an offset or a time. Raises InputError for one before the log."""
    end = log.end_offset
    if not log.replica.segments and log.replica.checkpoints:
        end = log.replica.checkpoints[-1].end_offset
    timeline = Timeline(session, log, end, permissive=mode == "permissive")
    if as_of is None:
        return timeline
    offset = int(as_of) if as_of.isdecimal() else _offset_at(timeline, as_of)
    if offset >= end:
        say(f"--as-of {as_of}: the log is committed to offset {end - 1}, that is what is read")
    if offset < log.start_offset - 1:
        raise InputError(
            f"{log.replica.path}: --as-of {as_of} lies before offset {log.start_offset}, where the log begins"
        )
    return Timeline(session, log, min(end, offset + 1), permissive=mode == "permissive")


def _offset_at(timeline: Timeline, text: str) -> int:
    """The last offset before the first record that is later than a time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--as-of {text}: neither an offset nor a time such as 2026-03-01T03:12:00+00:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    limit_ms = int(moment.timestamp() * 1000)
    later = timeline.log(["offset", "timestamp_ms"]).where(F.col("timestamp_ms") > limit_ms)
    found = later.agg(F.min("offset")).first()
    if found is None or found[0] is None:
        return timeline.end_offset - 1
    offset = int(found[0]) - 1
    say(f"--as-of {text} is offset {offset}")
    return offset


def say(text: str) -> None:
    """A line on stderr."""
    click.echo(f"kraftd-spark: {text}", err=True)


class Progress:
    """Tells of each step how long it took."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._since = time.monotonic()

    def step(self, what: str) -> None:
        """One more step is done."""
        now = time.monotonic()
        self._done += 1
        say(f"[{self._done}/{self._steps}] {what} ({now - self._since:.1f} s)")
        self._since = now
