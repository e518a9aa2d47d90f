"""`kraftd-spark validate`: whether the log, its checkpoints and its replicas hold what they must."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import click
from pyspark.sql import SparkSession

from kraftd.control_characters import visible
from kraftd.spark.as_of import make_timeline
from kraftd.spark.commands.options import Progress, find_input, input_options, print_note
from kraftd.spark.errors import InputError
from kraftd.spark.failures import end_session, ends_on_failure, what_failed
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import notes_of
from kraftd.spark.session import start_session
from kraftd.spark.validation.checks import READABLE, Check, checks_here, checks_with_spark


@click.command("validate")
@input_options()
def validate_command(
    inputs: tuple[str, ...],
    mode: str,
    high_watermark: int | None,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
    scratch: str | None,
) -> None:
    """Check that a log, its checkpoints and its replicas are consistent.

    The command checks checksums, offsets and epochs, compares checkpoints with the replayed log and replicas
    with each other, and checks the invariants of the controller. A note names what it could not check, which
    is no fault: a torn tail, a directory in use, a tail that no majority holds. Logs of at most 128 MiB need
    no Spark; with --master, Spark checks those too.

    Exit codes: 0 every check passed, 2 a check failed, 1 nothing could be read.
    """
    with ends_on_failure(), tempfile.TemporaryDirectory(prefix="kraftd-spark-", dir=scratch) as staging:
        start = partial(start_session, master, settings=dict(settings))
        replicas, log = find_input(inputs, mode, high_watermark, start, scratch)
        notes = []

        def note(text: str) -> None:
            notes.append(text)
            click.echo(f"note    {visible(text)}")

        for text in notes_of(replicas, log):
            note(text)
        checks = None
        if master is None:
            extent = Extent(log, log.end_offset, permissive=mode == "permissive")
            checks = checks_here(extent, replicas, note)
        if checks is not None:
            held, tried = _run(checks, mode, lambda: None)
        else:
            with _session(start) as session:
                timeline = make_timeline(session, log, None, mode, print_note)
                timeline.makes_several = True
                checks = checks_with_spark(timeline, replicas, note)
                held, tried = _run(checks, mode, partial(timeline.stage, staging))
    untried = len(checks) - tried
    rest = f"; not tried, because the log cannot be read: {untried}" if untried else ""
    click.echo(f"{held} of {tried} checks hold{rest}; notes: {len(notes)}")
    sys.exit(0 if held == len(checks) else 2)


@contextmanager
def _session(start: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    session = start()
    try:
        yield session
    finally:
        end_session(session)


def _run(checks: Mapping[str, Check], mode: str, stage: Callable[[], None]) -> tuple[int, int]:
    """How many checks hold, and how many were tried; stage is called once the log is known to be readable."""
    held = tried = 0
    progress = Progress(len(checks))
    for name, check in checks.items():
        difference = _difference(check)
        tried += 1
        held += difference is None
        click.echo(
            f"ok      {name}" if difference is None else f"FAILED  {name}\n        {visible(difference)}"
        )
        progress.step(name)
        if name == READABLE:
            if difference is not None and mode != "permissive":
                break  # the other checks would fail likewise
            stage()
    return held, tried


def _difference(check: Check) -> str | None:
    """The finding of a check, None without one; damage counts as a finding."""
    try:
        return check()
    except InputError as error:
        return str(error)
    except Exception as error:
        text = what_failed(error)
        if text.startswith("Spark failed"):
            raise
        return text
