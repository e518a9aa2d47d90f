"""The live log: Spark's own Kafka connector on `__cluster_metadata`, decoded as segments are.

    rows = read_live(spark, "127.0.0.1:9092")            # or stream=True
    rows.where("type = 'ConfigRecord'").show()

The connector is not part of PySpark: give its jars to the session (docs/spark.md names them). It returns
records without their batches and epochs: `epoch` and `batch_offset` are null, and there are no control
records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kraftd.spark.decoding.decode import Decoder
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.decoding.redaction import redacted_batch
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.layout import Replica, SegmentFile
from kraftd.spark.inputs.planning import SegmentPlan, Split
from kraftd.spark.inputs.replicas import CommittedLog, ReplicaLog
from kraftd.spark.inputs.storage import join
from kraftd.spark.writing import replace_dataset
from kraftd.types import METADATA_TOPIC
from kraftd.wire.batch import CorruptBatch, build_batch, read_batch

CLIENT_ID = f"{METADATA_TOPIC}-kraftd-spark"
"""A kraftd node names no broker to such a client: brokers do not know this topic (docs/clients.md)."""
_RECORD_BYTES = 100
"""About how long a record is."""


def read_live(
    session: SparkSession, bootstrap_servers: str, *, stream: bool = False, **options: str
) -> DataFrame:
    """The records that a listener serves, from the first on. options are the connector's own."""
    reader = session.readStream if stream else session.read
    source_options = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "kafka.client.id": CLIENT_ID,
        "subscribe": METADATA_TOPIC,
    }
    rows = (
        reader.format("kafka").options(**{"startingOffsets": "earliest", **source_options, **options}).load()
    )
    return decode_values(rows)


def live_log(session: SparkSession, bootstrap_servers: str, directory: str) -> tuple[CommittedLog, str]:
    """The log that a listener serves up to now, and the dataset in a directory to which it was written.

    Raises InputError if the listener serves no record.
    """
    cluster_id = live_cluster_id(session, bootstrap_servers)
    path = join(directory, "log")
    replace_dataset(read_live(session, bootstrap_servers), path)
    bounds = session.read.parquet(path).agg(F.min("offset"), F.max("offset"), F.count("*")).first()
    if bounds is None or bounds[0] is None:
        raise InputError(f"{bootstrap_servers}: {METADATA_TOPIC} has no record")
    first, end, size_bytes = bounds[0], bounds[1] + 1, bounds[2] * _RECORD_BYTES
    segment = SegmentFile(bootstrap_servers, first, size_bytes)
    plan = SegmentPlan(segment, (Split(bootstrap_servers, 0, size_bytes, first, end),), end, None, None)
    replica = Replica(bootstrap_servers, cluster_id, None, None, (segment,), ())
    return CommittedLog(ReplicaLog(replica, (plan,)), end, ()), path


def live_cluster_id(session: SparkSession, bootstrap_servers: str) -> str:
    """The id of the cluster behind a listener. Raises InputError if it does not answer."""
    jvm: Any = session.sparkContext._jvm
    properties = jvm.java.util.Properties()
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "client.id": CLIENT_ID,
        "default.api.timeout.ms": "10000",
        "request.timeout.ms": "5000",
    }
    for name, value in settings.items():
        properties.setProperty(name, value)
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
    except TypeError:
        raise InputError(
            "Spark's Kafka connector is not there: give its jars with --jars (docs/spark.md says which)"
        ) from None
    try:
        return str(admin.describeCluster().clusterId().get())
    except Py4JJavaError as error:
        raise InputError(f"{bootstrap_servers}: {error.java_exception.getMessage()}") from None
    finally:
        admin.close()


def decode_values(rows: DataFrame) -> DataFrame:
    """The columns of `records` from rows with offset, timestamp and value, as the connector gives them."""
    milliseconds = F.unix_millis("timestamp").alias("timestamp_ms")
    return rows.select("offset", milliseconds, "value").mapInArrow(
        _decoded, from_arrow_schema(record_schema())
    )


def _decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = record_schema()
    decoder = Decoder(schema)
    for batch in batches:
        offsets, times = batch.column("offset").to_pylist(), batch.column("timestamp_ms").to_pylist()
        values = batch.column("value").to_pylist()
        first = 0
        for at in range(1, len(offsets) + 1):
            # Consecutive records with the same time are decoded together: they probably were one batch.
            if at == len(offsets) or offsets[at] != offsets[at - 1] + 1 or times[at] != times[first]:
                _add(decoder, values[first:at], offsets[first], times[first])
                first = at
        for found in decoder.take():
            table = pa.Table.from_batches([redacted_batch(found)])
            for name in ("epoch", "batch_offset"):
                place = table.schema.get_field_index(name)
                table = table.set_column(
                    place, schema.field(name), pa.nulls(len(table), schema.field(name).type)
                )
            yield from table.to_batches()


def _add(decoder: Decoder, values: list[bytes], offset: int, timestamp_ms: int) -> None:
    try:
        decoder.add(read_batch(build_batch(values, offset, 0, timestamp_ms), verify=False))
    except CorruptBatch as error:
        raise InputError(f"{METADATA_TOPIC}: {error.reason}") from None
