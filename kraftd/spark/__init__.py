"""The data pipeline on Spark: a cluster's metadata log as tables. Needs the extra `kraftd[spark]`.

    from kraftd.spark import register, tables

    with tables(spark, "/var/lib/kraft", as_of="2h") as found:
        found["partitions"].where("leader = -1").show()
        found.create_views("leader_moves")
        spark.sql("SELECT cause, count(*) FROM leader_moves GROUP BY cause").show()

    update_lake(spark, "/var/lib/kraft", "/tmp/lake", format="delta")

    register(spark)
    records = spark.read.format("kraft").load("/var/lib/kraft")
    records.where("type = 'ConfigRecord'").select("offset", "resource_name", "name", "value").show()

`inputs` finds the files to read, `decoding` defines columns and fills them, `source` is the data source of
Spark; the package `tables` defines tables, and `cluster_tables` makes and writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

# Loaded first: else its first import would put the package in the place of the function below.
from kraftd.spark import tables as _definitions  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftd.spark.cluster_tables import Tables

__all__ = ["register", "tables", "update_lake"]


def tables(
    spark: SparkSession,
    source: str | Sequence[str],
    *,
    as_of: str | int | datetime | None = None,
    mode: str = "failfast",
    high_watermark: int | None = None,
    scratch: str | None = None,
) -> Tables:
    """The tables of docs/tables.md, by name, as of an offset or a time (the end of the log by default).

    source is a metadata.log.dir, a list of replicas' directories, or `host:port` of a kraftd client listener.
    as_of takes what `--as-of` takes, or a datetime. scratch is a directory for what is made; on a cluster,
    one that all workers share. Notes about the input are warnings. Raises InputError.
    """
    from kraftd.spark.cluster_tables import open_tables

    register(spark)
    return open_tables(spark, source, as_of=as_of, mode=mode, high_watermark=high_watermark, scratch=scratch)


def update_lake(
    spark: SparkSession,
    source: str | Sequence[str],
    output: str,
    *,
    format: Literal["delta", "iceberg"] = "delta",
    names: Sequence[str] | None = None,
    as_of: str | int | datetime | None = None,
    catalog: str | None = None,
    high_watermark: int | None = None,
    scratch: str | None = None,
) -> int:
    """Bring tables of Delta Lake or Iceberg up to the end of a log; returns the last offset that they have.

    `kraftd-spark tables --format` documents what is in output. source is a metadata.log.dir or a list of
    replicas' directories. names are the tables, all unless given; catalog is one of PyIceberg's
    configuration. Notes about the input are warnings. Raises InputError.
    """
    from kraftd.spark.lake.update import Target, update_from

    register(spark)
    target = Target(output, format, catalog)
    return update_from(spark, source, target, names, as_of, high_watermark, scratch)


def register(spark: SparkSession) -> None:
    """Make `format("kraft")` known to a session, with tables and with filters pushed down."""
    from kraftd.spark.registration import register as register_session

    register_session(spark)
