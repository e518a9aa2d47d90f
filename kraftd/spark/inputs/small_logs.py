"""Logs of a few megabytes: Spark's parallel plans cost far more than their records do.

The driver decodes such a log itself. Its tables are made by a session of their own: a plan there is one task
without shuffles or compiled code, and the driver writes each as one file.
"""

from __future__ import annotations

import uuid

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kraftd.spark.inputs.storage import join, open_output, write_bytes

SMALL_BYTES = 8 << 20
"""Most bytes of log and checkpoints for which one task is the fastest way: about 100,000 records."""
DIVIDED_BYTES = 128 << 20
"""Most bytes of log and checkpoints for which groups of partitions are replayed in processes, which is faster
than Spark on few cores.
"""
COMPRESSION, COMPRESSION_LEVEL = "zstd", 1
SUCCESS = "_SUCCESS"
_MARK = "spark.kraftd.small"
_SETTINGS = {
    _MARK: "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}


def small_session(session: SparkSession) -> SparkSession:
    """A session of the same application for small logs; settings of the given one stay as they are.

    It does not know `format("kraft")`: a timeline of it is staged before it is read.
    """
    found = session.newSession()
    for key, value in _SETTINGS.items():
        found.conf.set(key, value)
    return found


def is_small(session: SparkSession) -> bool:
    """Return whether `small_session` made a session."""
    return session.conf.get(_MARK, "false") == "true"


def in_one_task(rows: DataFrame) -> DataFrame:
    """The rows as one partition if their session is for small logs: so nothing is shuffled."""
    return rows.coalesce(1) if is_small(rows.sparkSession) else rows


def write_file(rows: DataFrame, directory: str) -> None:
    """Write rows as a dataset of one file, by the driver."""
    with open_output(join(directory, f"part-000000-{uuid.uuid4().hex}.parquet")) as stream:
        pq.write_table(rows.toArrow(), stream, compression=COMPRESSION, compression_level=COMPRESSION_LEVEL)
    write_bytes(join(directory, SUCCESS), b"")
