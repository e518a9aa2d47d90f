"""`kraftd-spark ingest`: appends the growing log to a dataset."""

from __future__ import annotations

import json
from functools import partial

import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kraftd.spark.commands.options import find_input, input_options, print_note
from kraftd.spark.failures import end_session, ends_on_failure
from kraftd.spark.inputs.input_log import refuse_output_in_input
from kraftd.spark.inputs.storage import absolute, join
from kraftd.spark.live import live_cluster_id, read_live
from kraftd.spark.session import start_session
from kraftd.spark.source.batch_source import NAME
from kraftd.spark.writing import delete, list_directories, move, size_below

FOLLOW_INTERVAL = "5 seconds"
MERGED_BYTES = 1 << 20
"""A directory up to this size is rewritten with the next batch: about 50,000 records."""
_FIRST, _READY = "first_offset=", ".ready-"


@click.command("ingest")
@input_options(required=False)
@click.option(
    "--bootstrap-server",
    "servers",
    metavar="HOST:PORT",
    help="Instead of --input: a kraftd controller's listener for clients, read by Spark's Kafka connector.",
)
@click.option(
    "--jars", metavar="A.JAR,B.JAR", help="The connector's jars, unless spark-submit provides them."
)
@click.option("--output", required=True, metavar="OUT", help="The directory of the table: OUT/records/.")
@click.option("--follow", is_flag=True, help=f"Read again every {FOLLOW_INTERVAL}, until interrupted.")
@click.option(
    "--show-secrets",
    is_flag=True,
    help="With --input: store passwords, values of unknown configs and bytes of damage as well.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Most records in a batch.",
)
def ingest_command(
    inputs: tuple[str, ...],
    servers: str | None,
    jars: str | None,
    output: str,
    follow: bool,
    show_secrets: bool,
    max_rows: int,
    mode: str,
    high_watermark: int | None,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
    scratch: str | None,
) -> None:
    """Append new records to OUT/records/.

    Another run continues where the last one ended, also after a crash. Each batch is a directory
    cluster_id=.../first_offset=..., so no offset is stored twice.
    """
    if inputs and servers:
        raise click.UsageError("--input and --bootstrap-server exclude each other: give one of them")
    if not inputs and not servers:
        raise click.UsageError("give --input or --bootstrap-server")
    with ends_on_failure():
        refuse_output_in_input(inputs, output)
        start = partial(start_session, master, jars=jars, settings=dict(settings))
        log = find_input(inputs, mode, high_watermark, start, scratch)[1] if inputs else None
        session = start()
        try:
            if log is None:
                assert servers is not None
                cluster_id = live_cluster_id(session, servers)
                rows = read_live(session, servers, stream=True, maxOffsetsPerTrigger=str(max_rows))
            else:
                cluster_id = log.replica.cluster_id or "unknown"
                reader = session.readStream.format(NAME).option("paths", json.dumps(list(inputs)))
                reader = reader.option("showSecrets", str(show_secrets).lower())
                reader = reader.option("mode", mode).option("maxRowsPerTrigger", str(max_rows))
                if high_watermark is not None:
                    reader = reader.option("highWatermark", str(high_watermark))
                rows = reader.load()
            cluster = join(join(absolute(output), "records"), f"cluster_id={cluster_id}")
            writer = rows.writeStream.foreachBatch(lambda batch, _: append_batch(batch, cluster))
            writer = writer.option("checkpointLocation", join(absolute(output), ".checkpoint"))
            trigger = {"processingTime": FOLLOW_INTERVAL} if follow else {"availableNow": True}
            query = writer.trigger(**trigger).start()
            query.awaitTermination()
            progress = query.lastProgress
            print_note(f"{cluster}: up to date" if progress is None else f"{cluster}: {_summary(progress)}")
        finally:
            end_session(session)


def append_batch(rows: DataFrame, directory: str) -> None:
    """Write a batch as a directory named after its first offset, in place of all rows from that offset on.

    A small directory before it takes the batch in, so an idle cluster makes no more directories. Spark
    repeats an unfinished batch with the same offsets, so this may run twice, also after a kill anywhere.
    """
    session = rows.sparkSession
    batch, merged = join(directory, ".batch"), join(directory, ".merged")
    _finish(session, directory)
    rows.write.mode("overwrite").parquet(batch)
    written = session.read.schema(rows.schema).parquet(batch)
    found = written.agg(F.min("offset")).first()
    if found is None or found[0] is None:
        delete(session, batch)
        return
    name = f"{_FIRST}{found[0]:020d}"
    before = [other for other in _stored(session, directory) if other < name]
    if before and size_below(session, join(directory, before[-1])) <= MERGED_BYTES:
        name = before[-1]
        kept = session.read.schema(rows.schema).parquet(join(directory, name))
        both = kept.where(F.col("offset") < found[0]).unionByName(written)
        both.coalesce(1).write.mode("overwrite").parquet(merged)
        delete(session, batch)
        batch = merged
    move(session, batch, join(directory, f"{_READY}{name}"))
    _finish(session, directory)


def _finish(session: SparkSession, directory: str) -> None:
    """Put a complete directory in the place of those that it replaces, also if a kill had cut that off."""
    for ready in list_directories(session, directory):
        if ready.startswith(_READY):
            name = ready.removeprefix(_READY)
            for other in _stored(session, directory):
                if other >= name:
                    delete(session, join(directory, other))
            move(session, join(directory, ready), join(directory, name))


def _stored(session: SparkSession, directory: str) -> list[str]:
    """The directories of batches, by offset."""
    return [name for name in list_directories(session, directory) if name.startswith(_FIRST)]


def _summary(progress: object) -> str:
    sources = getattr(progress, "sources", None) or []
    return f"read up to {sources[0].endOffset}" if sources else "up to date"
