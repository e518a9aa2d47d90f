"""`kraftd-spark report`: one HTML file about a cluster's history."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from pyspark.sql import SparkSession

from kraftd.history.points import Point
from kraftd.spark.as_of import check_offset, extent_at, make_timeline
from kraftd.spark.cluster_tables import DAMAGED, write_tables
from kraftd.spark.commands.damage import find_damage
from kraftd.spark.commands.options import (
    AsOf,
    Progress,
    find_input,
    input_options,
    print_note,
)
from kraftd.spark.divided_tables import need_no_spark, write_tables_here
from kraftd.spark.errors import InputError
from kraftd.spark.failures import end_session, ends_on_failure
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import refuse_output_in_input
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.storage import join
from kraftd.spark.report.page import PARTS, make_page
from kraftd.spark.report.written_tables import NAMES, WrittenTables
from kraftd.spark.session import start_session


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
    """Write a page about brokers, partitions, incidents, leader moves, churn and admin operations.

    Exit codes: 0 all was read; 2 mode permissive left out what is damaged; 1 nothing could be read.
    """
    damage = None
    names = [*NAMES, *[DAMAGED] * (mode == "permissive")]
    with ends_on_failure(), tempfile.TemporaryDirectory(prefix="kraftd-spark-", dir=scratch) as staging:
        refuse_output_in_input(inputs, output)
        start = partial(start_session, master, settings=dict(settings))
        replicas, log = find_input(inputs, mode, high_watermark, start, scratch)
        check_offset(log, as_of)
        whole = Extent(log, log.end_offset, permissive=mode == "permissive")
        step = Progress(len(names) + len(PARTS)).step
        extent = None
        if master is None and need_no_spark(log):
            extent = extent_at(whole, as_of, print_note)
            if not write_tables_here(extent, replicas, staging, names, step):
                extent = None
        if extent is None:
            step = Progress(1 + len(names) + len(PARTS)).step
            extent = _with_spark(start(), whole, as_of, replicas, staging, names, step)
        notes = []
        if mode == "permissive":
            damage = find_damage(join(staging, DAMAGED), log.log.torn)
        if damage is not None:
            notes.append(f"Damaged and left out: {damage}. The first is {damage.first}.")
        page = make_page(WrittenTables(extent, staging), step, notes)
        try:
            Path(output).write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{output}: {error.strerror}") from None
        for text in notes:
            print_note(text)
    if damage is not None:
        sys.exit(2)


def _with_spark(
    session: SparkSession,
    whole: Extent,
    as_of: Point | None,
    replicas: list[Replica],
    staging: str,
    names: list[str],
    step: Callable[[str], None],
) -> Extent:
    """Write the tables with Spark, and stop it."""
    try:
        mode = "permissive" if whole.permissive else "failfast"
        timeline = make_timeline(session, whole.source, as_of, mode, print_note)
        write_tables(timeline, replicas, staging, names, step)
    finally:
        end_session(session)
    return timeline
