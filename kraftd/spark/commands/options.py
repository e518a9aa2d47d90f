"""Options of several commands, and their evaluation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraftd.history.points import Point, parse_point
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.in_use import lock_holder
from kraftd.spark.checkpoints import read_header
from kraftd.spark.errors import InputError
from kraftd.spark.layout import Replica, find_replicas, refuse_ordinary_records
from kraftd.spark.replicas import CommittedLog, committed_log
from kraftd.spark.storage import absolute, join, kind_of, split_name
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
    for replica in replicas:
        refuse_ordinary_records(replica)
    log = committed_log(replicas, permissive=mode == "permissive", high_watermark=high_watermark)
    if log.end_offset <= log.start_offset and not log.log.checkpoint_end_offset:
        raise InputError(f"{log.replica.path}: the log holds no committed record")
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


class AsOf(click.ParamType[Point]):
    """The type of `--as-of`: refused before Spark starts if it is neither an offset nor a time."""

    name = "OFFSET|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Point:
        if isinstance(value, Point):
            return value
        try:
            return parse_point(str(value), time.time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def check_offset(log: CommittedLog, as_of: Point | None) -> None:
    """Raises InputError for an offset that no committed record has yet."""
    if as_of is not None and as_of.offset is not None and as_of.offset >= log.end_offset:
        raise InputError(
            f"{log.replica.path}: --as-of {as_of.offset} is beyond the end: the log is committed to offset "
            f"{log.end_offset - 1}"
        )


def make_timeline(session: SparkSession, log: CommittedLog, as_of: Point | None, mode: str) -> Timeline:
    """The timeline up to and including an offset or a time. Raises InputError for one outside the log."""
    end = log.end_offset
    check_offset(log, as_of)
    timeline = Timeline(session, log, end, permissive=mode == "permissive")
    if as_of is None or as_of == Point():
        return timeline
    offset = as_of.offset if as_of.offset is not None else _offset_at(timeline, as_of.time_ms or 0)
    if offset < timeline.first_state_offset:
        raise _too_early(timeline, str(offset))
    return Timeline(session, log, min(end, offset + 1), permissive=mode == "permissive")


def _too_early(timeline: Timeline, as_of: str) -> InputError:
    return InputError(
        f"{timeline.source.replica.path}: --as-of {as_of} lies before offset {timeline.first_state_offset}, "
        "the first at which the log and its oldest checkpoint tell the state"
    )


def _offset_at(timeline: Timeline, time_ms: int) -> int:
    """The last offset before the first record that is later than a time.

    Raises InputError for a time before the first record, or before the end of the first checkpoint.
    """
    text = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()
    if timeline.first_checkpoint is not None:
        known_ms = read_header(timeline.first_checkpoint).last_contained_log_timestamp_ms
        if known_ms is not None and time_ms < known_ms:
            raise _too_early(timeline, text)
    if not timeline.source.replica.segments:
        return timeline.end_offset - 1
    times = timeline.log(["offset", "timestamp_ms"])
    later = F.min(F.when(F.col("timestamp_ms") > time_ms, F.col("offset")))
    found = times.agg(later.alias("later"), F.max("timestamp_ms").alias("newest_ms")).first()
    if found is None or found["later"] is None:
        if found is not None and found["newest_ms"] is not None:
            newest = datetime.fromtimestamp(found["newest_ms"] / 1000, UTC).isoformat()
            print_note(f"--as-of {text} is after the last record, of {newest}: the whole log is read")
        return timeline.end_offset - 1
    offset = int(found["later"]) - 1
    if offset < 0:
        raise InputError(f"{timeline.source.replica.path}: --as-of {text} is before the first record")
    print_note(f"--as-of {text} is offset {offset}")
    return offset


def refuse_output_in_input(inputs: Sequence[str], output: str, replaced: Sequence[str] = ()) -> None:
    """Raises InputError if an output lies in an input's directory, or would replace an input."""
    target = _real(output)
    for each in inputs:
        source = _real(each)
        directory, name = split_name(source)
        if name == PARTITION_DIRECTORY or kind_of(source) == "file":
            source = directory
        if split_name(source)[1] == PARTITION_DIRECTORY:
            source = split_name(source)[0]
        if target == source or target.startswith(f"{source}/"):
            raise InputError(f"--output {output} lies in the input {each}, which is never written to")
        for place in replaced:
            if f"{_real(each)}/".startswith(f"{join(target, place)}/"):
                raise InputError(f"--output {output} would replace {join(target, place)}, which holds {each}")


def _real(path: str) -> str:
    """A path without links, so that two of them can be compared."""
    found = absolute(path)
    return found if "://" in found else os.path.realpath(found)


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
