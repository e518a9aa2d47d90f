"""Starts Spark for the commands: quiet, on loopback, with the data source `kraft`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.resources import files

from pyspark.sql import SparkSession

from kraftd.spark.failures import takes_interrupts
from kraftd.spark.inputs.input_log import is_small_log
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.inputs.small_logs import small_session
from kraftd.spark.source.batch_source import source_of

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_ADDRESS = "spark.kraftd.tables"


_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For runs of seconds: one tier of the compiler and one thread for collections cost less than they save."""


def start_session(
    master: str | None,
    name: str = "kraftd-spark",
    *,
    jars: str | None = None,
    small: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session, or the one that spark-submit or an earlier call made. master is `local[*]` unless it is
    given; jars, separated by commas, are those that PySpark lacks. small is for a run of seconds. settings
    take precedence over those made here."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None or "SPARK_ENV_LOADED" not in os.environ:
        builder = builder.master(master or "local[*]")
    if master is None or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    log4j = files("kraftd.spark").joinpath("log4j2.properties")
    chosen = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}"
        + (f" {_SMALL_JVM}" if small else ""),
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true" if sys.stderr.isatty() else "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        # Its 64 MiB would put the shuffles of 200,000 partitions into one task.
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        PUSHDOWN: "true",
    }
    if jars is not None:
        chosen["spark.jars"] = jars
    for key, value in (chosen | dict(settings or {})).items():
        builder = builder.config(key, value)
    with takes_interrupts():
        session = builder.getOrCreate()
    if not session.sparkContext.getConf().contains(SHUFFLE_PARTITIONS):
        # Spark's 200 partitions suit clusters; it merges the smallest ones at run time.
        session.conf.set(SHUFFLE_PARTITIONS, str(4 * session.sparkContext.defaultParallelism))
    register_source(session)
    return session


def session_for(session: SparkSession, log: CommittedLog) -> SparkSession:
    """The session in which a log's tables are made: one of its own for a small log."""
    return small_session(session) if is_small_log(log) else session


def register_source(session: SparkSession, address: str | None = None) -> None:
    """Make `format("kraft")` known to a session, with filters pushed down.

    address is that of a `TableServer`, without which option `table` is refused. A source that has one stays.
    """
    session.conf.set(PUSHDOWN, "true")
    if address is None and session.conf.get(_ADDRESS, ""):
        return
    session.conf.set(_ADDRESS, address or "")
    session.dataSource.register(source_of(address))
