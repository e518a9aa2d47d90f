"""`kraftd-spark tables`: one Parquet dataset a table."""

from __future__ import annotations

import sys
from contextlib import suppress

import click
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.history.points import Point
from kraftd.spark.as_of import check_offset, make_timeline
from kraftd.spark.cluster_tables import DAMAGED, STAGING, write_tables
from kraftd.spark.commands.options import (
    AsOf,
    Progress,
    find_input,
    input_options,
    print_note,
    refuse_output_in_input,
)
from kraftd.spark.errors import InputError
from kraftd.spark.failures import ends_on_failure, quiet_if_interrupted
from kraftd.spark.input_log import is_small_log
from kraftd.spark.planning import TornTail
from kraftd.spark.session import session_for, start_session
from kraftd.spark.storage import absolute, join
from kraftd.spark.tables.catalog import NAMES, WITHOUT_LOG
from kraftd.spark.writing import delete


@click.command("tables")
@input_options()
@click.option("--output", required=True, metavar="OUT", help="Write OUT/<table>/, and replace what is there.")
@click.option("--tables", "names", metavar="A,B", help=f"The tables to write.  [default: {', '.join(NAMES)}]")
@click.option(
    "--as-of",
    type=AsOf(),
    help="Read committed records up to this offset or time, inclusive: 4711, 2026-03-01T03:12, 2h (ago).",
)
def tables_command(
    inputs: tuple[str, ...],
    output: str,
    names: str | None,
    as_of: Point | None,
    mode: str,
    high_watermark: int | None,
    master: str | None,
) -> None:
    """Write the cluster's history and state as tables.

    Exit codes: 0 all was read; 2 mode permissive left out what is damaged; 1 nothing could be read.
    """
    faults = 0
    with ends_on_failure():
        chosen = _chosen(names)
        refuse_output_in_input(inputs, output, [*NAMES, DAMAGED, STAGING])
        replicas, log = find_input(inputs, mode, high_watermark)
        check_offset(log, as_of)
        session = start_session(master, small=is_small_log(log))
        try:
            timeline = make_timeline(session_for(session, log), log, as_of, mode, print_note)
            if mode == "permissive":
                chosen = [*chosen, DAMAGED]
            target = absolute(output)
            staged = not WITHOUT_LOG.issuperset(chosen)
            write_tables(timeline, replicas, target, chosen, Progress(len(chosen) + staged).step)
            if mode == "permissive":
                faults = _report_damage(timeline.made[DAMAGED], join(target, DAMAGED), log.log.torn)
        finally:
            quiet_if_interrupted(session)
            with suppress(Py4JError):  # the error that ended the run is reported, not a failed clean-up
                delete(session, join(absolute(output), STAGING))
            session.stop()
    if faults:
        sys.exit(2)


def _report_damage(damaged: DataFrame, path: str, torn: TornTail | None) -> int:
    """Report how much was not decoded; returns the number of faults. A torn tail is none."""
    places = damaged.select("path", "position", "reason").where("position IS NOT NULL")
    if torn is not None:
        places = places.where((F.col("path") != torn.path) | (F.col("position") < torn.position))
    first = places.orderBy("path", "position").first()
    if first is None:
        return 0
    count = places.count()
    print_note(
        f"damaged: {count} {'piece' if count == 1 else 'pieces'}, listed in {path}; the first is "
        f"{first['path']}: byte {first['position']}: {first['reason']}"
    )
    return count


def _chosen(names: str | None) -> list[str]:
    if names is None:
        return list(NAMES)
    found = [name.strip() for name in names.split(",") if name.strip()]
    for name in found:
        if name not in NAMES:
            raise InputError(f"--tables {name}: there is no such table; there are {', '.join(NAMES)}")
    return list(dict.fromkeys(found))
