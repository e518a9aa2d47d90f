"""`kraftd-spark tables`: one Parquet dataset a table."""

from __future__ import annotations

from contextlib import suppress

import click
from py4j.protocol import Py4JError

from kraftd.spark.commands.options import Progress, find_log, input_options, make_timeline
from kraftd.spark.errors import InputError
from kraftd.spark.failures import ends_on_failure
from kraftd.spark.session import start_session
from kraftd.spark.storage import absolute, join
from kraftd.spark.tables.catalog import NAMES, WITHOUT_LOG, table
from kraftd.spark.writing import delete, replace_dataset

RECORDS = "records"
STAGING = ".staging"


@click.command("tables")
@input_options()
@click.option("--output", required=True, metavar="OUT", help="Write OUT/<table>/, and replace what is there.")
@click.option("--tables", "names", metavar="A,B", help=f"The tables to write.  [default: {', '.join(NAMES)}]")
@click.option(
    "--as-of",
    metavar="OFFSET|TIME",
    help="Read committed records up to this offset or time, inclusive (ISO 8601; UTC without a zone).",
)
def tables_command(
    inputs: tuple[str, ...],
    output: str,
    names: str | None,
    as_of: str | None,
    mode: str,
    high_watermark: int | None,
    master: str | None,
) -> None:
    """Write the cluster's history and state as tables."""
    with ends_on_failure():
        chosen = _chosen(names)
        replicas, log = find_log(inputs, mode, high_watermark)
        session = start_session(master)
        try:
            timeline = make_timeline(session, log, as_of, mode)
            if mode == "permissive":
                chosen = [*chosen, "damaged"]
            target = absolute(output)
            rest = [name for name in chosen if name != RECORDS]
            staged = not WITHOUT_LOG.issuperset(rest)
            progress = Progress(len(chosen) + staged)
            records = None
            if RECORDS in chosen:
                records = join(target, RECORDS)
                timeline.write_log(records)
                progress.step(RECORDS)
            if staged:
                timeline.stage(join(target, STAGING), None if timeline.permissive else records)
                progress.step("decoding")
            for name in rest:
                replace_dataset(table(name, timeline, replicas), join(target, name))
                timeline.keep(name, join(target, name))
                progress.step(name)
        finally:
            with suppress(Py4JError):  # the error that ended the run is reported, not a failed clean-up
                delete(session, join(absolute(output), STAGING))
            session.stop()


def _chosen(names: str | None) -> list[str]:
    if names is None:
        return list(NAMES)
    found = [name.strip() for name in names.split(",") if name.strip()]
    for name in found:
        if name not in NAMES:
            raise InputError(f"--tables {name}: there is no such table; there are {', '.join(NAMES)}")
    return list(dict.fromkeys(found))
