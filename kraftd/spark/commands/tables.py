"""`kraftd-spark tables`: one Parquet dataset a table, or tables of Delta Lake or Iceberg."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import click
from pyspark.sql import SparkSession

from kraftd.history.points import Point
from kraftd.spark.as_of import check_offset, extent_at, make_timeline
from kraftd.spark.cluster_tables import DAMAGED, STAGING, write_tables
from kraftd.spark.commands.damage import find_damage
from kraftd.spark.commands.options import (
    AsOf,
    Progress,
    find_input,
    input_options,
    print_note,
)
from kraftd.spark.coordinators.choice import choose_tables
from kraftd.spark.coordinators.tables import write_coordinator_tables
from kraftd.spark.divided_tables import need_no_spark, write_tables_here
from kraftd.spark.failures import end_session, ends_on_failure
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import refuse_output_in_input
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.inputs.storage import absolute, delete_directory, is_local, join
from kraftd.spark.lake.tables import CATALOG_FILE, FORMATS, refuse_tables_of_a_lake
from kraftd.spark.lake.update import Target, update_lake
from kraftd.spark.session import start_session
from kraftd.spark.tables.catalog import NAMES, WITHOUT_LOG
from kraftd.spark.tables.columns import COORDINATOR_TABLES
from kraftd.spark.writing import delete


@click.command("tables")
@input_options()
@click.option("--output", required=True, metavar="OUT", help="Write OUT/<table>/, and replace what is there.")
@click.option(
    "--tables",
    "names",
    metavar="A,B",
    help=f"The tables to write.  [default: {', '.join(NAMES)}; if inputs are brokers' log.dirs also "
    f"{', '.join(COORDINATOR_TABLES)}]",
)
@click.option(
    "--as-of",
    type=AsOf(),
    help="Read committed records up to this offset or time, inclusive: 4711, 2026-03-01T03:12, 2h (ago).",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["parquet", *FORMATS]),
    default="parquet",
    show_default=True,
    help="delta and iceberg bring tables that are there up to the end of the log. They need kraftd[lake].",
)
@click.option(
    "--catalog",
    metavar="NAME",
    help=f"For iceberg: a catalog of PyIceberg's configuration.  [default: OUT/{CATALOG_FILE}]",
)
def tables_command(
    inputs: tuple[str, ...],
    output: str,
    names: str | None,
    as_of: Point | None,
    kind: str,
    catalog: str | None,
    mode: str,
    high_watermark: int | None,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
    scratch: str | None,
) -> None:
    """Write the cluster's history and state as tables.

    Exit codes: 0 all was read; 2 mode permissive left out what is damaged; 1 nothing could be read.
    """
    damage = None
    if catalog is not None and kind != "iceberg":
        raise click.UsageError("--catalog is for --format iceberg")
    if kind != "parquet" and mode == "permissive":
        raise click.UsageError(f"--format {kind} reads sound logs alone: leave --mode permissive out")
    with ends_on_failure():
        target = absolute(output)
        why_not = _why_no_coordinators(kind, mode, target)
        chosen, of_coordinators, brokers = choose_tables(
            None if names is None else names.split(","), inputs, as_of, why_not
        )
        refuse_output_in_input(inputs, output, [*NAMES, *COORDINATOR_TABLES, DAMAGED, STAGING])
        if kind == "parquet":
            refuse_tables_of_a_lake(target, [*chosen, *of_coordinators])
        if brokers is not None and of_coordinators:
            step = Progress(len(of_coordinators)).step
            write_coordinator_tables(brokers, target, of_coordinators, as_of, step=step)
        if not chosen:
            return
        start = partial(start_session, master, settings=dict(settings))
        replicas, log = find_input(inputs, mode, high_watermark, start, scratch)
        check_offset(log, as_of)
        if kind != "parquet":
            _update(Target(target, kind, catalog), replicas, log, chosen, as_of, start, small=master is None)
            return
        chosen += [DAMAGED] * (mode == "permissive")
        extent = Extent(log, log.end_offset, permissive=mode == "permissive")
        here = master is None and is_local(target)
        step = Progress(len(chosen)).step
        if not (
            here
            and need_no_spark(log)
            and write_tables_here(extent_at(extent, as_of, print_note), replicas, target, chosen, step)
        ):
            with _session(start, target) as session:
                timeline = make_timeline(session, log, as_of, mode, print_note)
                staged = not WITHOUT_LOG.issuperset(chosen)
                write_tables(timeline, replicas, target, chosen, Progress(len(chosen) + staged).step)
        if mode == "permissive":
            path = join(target, DAMAGED)
            damage = find_damage(path, log.log.torn)
            if damage is not None:
                print_note(f"damaged: {damage}, listed in {path}; the first is {damage.first}")
    if damage is not None:
        sys.exit(2)


def _why_no_coordinators(kind: str, mode: str, target: str) -> str:
    """Why a run makes no tables of coordinators, or ""."""
    if kind != "parquet":
        return "tables of coordinators are written as Parquet"
    if mode == "permissive":
        return "tables of coordinators are made of sound logs: leave --mode permissive out"
    return "" if is_local(target) else "tables of coordinators are written to a local disk"


def _update(
    target: Target,
    replicas: list[Replica],
    log: CommittedLog,
    names: list[str],
    as_of: Point | None,
    start: Callable[[], SparkSession],
    *,
    small: bool,
) -> None:
    """Bring the tables of a lake up to the end of the log; Spark starts if it is needed."""
    with ExitStack() as stack:
        end_offset = update_lake(
            target,
            log,
            replicas,
            names,
            as_of,
            session_of=lambda: stack.enter_context(_session(start, target.directory)),
            note=print_note,
            step=Progress(len(names)).step,
            small=small,
        )
    print_note(f"{target.directory}: the tables are as of offset {end_offset - 1}")


@contextmanager
def _session(start: Callable[[], SparkSession], target: str) -> Iterator[SparkSession]:
    """A session that deletes the decoded log in the end."""
    session = start()
    try:
        yield session
    finally:
        staging = join(target, STAGING)
        end_session(session, partial(delete, session, staging))
        if is_local(staging):
            delete_directory(staging)  # if the JVM did not live to do it
