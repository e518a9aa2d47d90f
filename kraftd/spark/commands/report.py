"""`kraftd-spark report`: one HTML file about a cluster's history."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from kraftd.history.points import Point
from kraftd.spark.as_of import check_offset, make_timeline
from kraftd.spark.commands.options import (
    AsOf,
    Progress,
    find_input,
    input_options,
    print_note,
)
from kraftd.spark.errors import InputError
from kraftd.spark.failures import ends_on_failure, quiet_if_interrupted
from kraftd.spark.inputs.input_log import is_small_log, refuse_output_in_input
from kraftd.spark.inputs.storage import join
from kraftd.spark.report.page import PARTS, make_page
from kraftd.spark.session import session_for, start_session
from kraftd.spark.tables.catalog import TABLES
from kraftd.spark.timeline import Timeline
from kraftd.spark.writing import replace_dataset

KEPT = ("partition_changes", "partition_intervals", "partitions", "isr_churn", "audit")
"""What several parts of the page are made of."""


@click.command("report")
@input_options()
@click.option(
    "--output", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The HTML file to write."
)
@click.option("--as-of", type=AsOf(), help="Read records up to and including this offset or time.")
def report_command(
    inputs: tuple[str, ...],
    output: str,
    as_of: Point | None,
    mode: str,
    high_watermark: int | None,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
    scratch: str | None,
) -> None:
    """Write a page about brokers, partitions, incidents, leader moves, churn and admin operations."""
    with ends_on_failure(), tempfile.TemporaryDirectory(prefix="kraftd-spark-", dir=scratch) as staging:
        refuse_output_in_input(inputs, output)
        start = partial(start_session, master, settings=dict(settings))
        _, log = find_input(inputs, mode, high_watermark, start, scratch)
        check_offset(log, as_of)
        session = start(small=is_small_log(log))
        try:
            timeline = make_timeline(session_for(session, log), log, as_of, mode, print_note)
            page = page_of(timeline, staging, Progress(1 + len(KEPT) + len(PARTS)).step)
        finally:
            quiet_if_interrupted(session)
            session.stop()
        try:
            Path(output).write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{output}: {error.strerror}") from None


def page_of(timeline: Timeline, staging: str, step: Callable[[str], None]) -> str:
    """The page of a timeline, which is decoded into a directory first; step is called after each part."""
    timeline.stage(staging)
    step("decoding")
    for name in KEPT:
        replace_dataset(TABLES[name](timeline), join(staging, name))
        timeline.keep(name, join(staging, name))
        step(name)
    return make_page(timeline, step)
