"""The pipeline on Spark beside its alternatives, in one run.

    .venv/bin/python -m bench.spark                    # 1, 2, 5 and 10 million records, a quarter of an hour
    .venv/bin/python -m bench.spark --curve 1 --only columns,state

`columns` is the table `records` as `kraftd-spark tables` makes it. Beside it: `spark_writer`, the same
columns handed to Spark, which writes them; `parquet_to_parquet`, what Spark takes to copy that table;
`record_by_record`, the same source decoding in Python; `dump_log_json`, Kafka's dump-log to JSON read by
Spark; and `state`, the table `partitions` as of the end of a log with a million partitions, from nothing;
then `history`, the table `partition_changes` of that log, once it is decoded. Slow routes take `--slow`
million records. `tables` is `kraftd-spark tables` from the shell, all tables, without Spark: of a small log,
and of 200,000 partitions with 240,000 changes.

A figure is wall and CPU time (of the driver, its JVM and the workers) and the highest resident memory of each
kind of process. Needs the extra kraftd[spark], Java 17+ and Kafka's jars (testkit/fetch.py).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.processes import Meter
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.parquet import Job, write_splits
from kraftd.spark.session import start_session
from kraftd.spark.source.reading import Wanted
from kraftd.spark.source.tasks import plan_tasks
from kraftd.spark.tables.partitions import partition_changes, partitions
from kraftd.spark.timeline import Timeline
from kraftd.spark.writing import replace_dataset
from kraftd.wire.batch import build_batch, iter_batches
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_records
from testkit.java import TOOLS, java_command

MILLION = 1_000_000
PARTITIONS_PER_TOPIC = 100
RECORDS_PER_BATCH = 500
VERSION = 2
START_MS = 1_700_000_000_000
ROUTES = (
    "columns",
    "spark_writer",
    "parquet_to_parquet",
    "record_by_record",
    "dump_log_json",
    "state",
    "history",
    "tables",
)
WARM = 200_000
"""Records of a log that is read first: too many for the driver alone, so the workers are running then."""
TABLES = {18_000: 8_000, 440_000: 200_000}
"""Partitions by number of records, of the logs for the route `tables`."""


def write_log(directory: Path, records: int, partitions: int | None = None) -> Path:
    """Write a log of partitions (half of the records unless given) and changes of their ISRs.

    Returns its directory.
    """
    partition = directory / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    (directory / "meta.properties").write_text("version=1\ncluster.id=bench\nnode.id=1\n")
    offset = 0
    waiting: list[VersionedRecord] = []
    with (partition / f"{0:020d}.log").open("wb") as file:

        def flush() -> None:
            nonlocal offset, waiting
            values = encode_records(waiting)
            file.write(build_batch(values, offset, 1, START_MS + offset))
            offset, waiting = offset + len(values), []

        for message in _messages(records, partitions or records // 2):
            waiting.append(VersionedRecord(message, 0 if isinstance(message, TopicRecord) else VERSION))
            if len(waiting) == RECORDS_PER_BATCH:
                flush()
        if waiting:
            flush()
    return directory


def _messages(records: int, count: int) -> Iterator[Message]:
    count_so_far = 0
    for number in range(-(-count // PARTITIONS_PER_TOPIC)):
        topic_id = number.to_bytes(16, "big")
        yield TopicRecord(name=f"topic-{number}", topic_id=topic_id)
        for index in range(min(PARTITIONS_PER_TOPIC, count - count_so_far)):
            replicas = tuple((number + index + step) % 6 for step in range(3))
            yield PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=(b"d" * 16, b"e" * 16, b"f" * 16),
            )
            count_so_far += 1
    for at in range(records - count):
        number, index = divmod(at % count, PARTITIONS_PER_TOPIC)
        replicas = tuple((number + index + step) % 6 for step in range(2))
        yield PartitionChangeRecord(
            partition_id=index, topic_id=number.to_bytes(16, "big"), isr=replicas, leader=replicas[1]
        )


def repeat_log(source: Path, directory: Path, copies: int) -> Path:
    """Write a log with another's batches several times, one copy after the other; return its directory.

    A batch's checksum does not cover its base offset, so a copy needs no encoding. Such a log can be read,
    but not replayed.
    """
    (partition := directory / "__cluster_metadata-0").mkdir(parents=True)
    shutil.copy(source / "meta.properties", directory)
    data = bytearray(next(source.glob("__cluster_metadata-0/*.log")).read_bytes())
    batches = list(iter_batches(bytes(data)))
    records = batches[-1].header.next_offset
    with (partition / f"{0:020d}.log").open("wb") as file:
        for copy in range(copies):
            for batch in batches:
                offset = batch.header.base_offset + copy * records
                data[batch.position : batch.position + 8] = offset.to_bytes(8, "big")
            file.write(data)
    return directory


class Routes:
    """The routes of one log to its tables."""

    def __init__(self, session: SparkSession, log: Path, home: Path) -> None:
        self.session, self.log, self.home = session, log, home
        self.plan = committed_log(find_replicas([str(log)]))
        self.timeline = Timeline(session, self.plan, self.plan.end_offset)

    def columns(self) -> None:
        self.timeline.write_log(str(self.home / "columns"))

    def spark_writer(self) -> None:
        rows = self.session.read.format("kraft").load(str(self.log)).drop("damage")
        rows.write.mode("overwrite").parquet(str(self.home / "spark_writer"))

    def parquet_to_parquet(self) -> None:
        rows = self.session.read.parquet(str(self.home / "columns"))
        rows.write.mode("overwrite").parquet(str(self.home / "again"))

    def record_by_record(self) -> None:
        tasks = plan_tasks(self.plan.log.splits, Wanted(), 0, self.plan.end_offset)
        job = Job(str(self.home / "records"), record_schema(), permissive=False, columns=False)
        write_splits(self.session, tasks, job)

    def state(self) -> None:
        self.timeline.stage(str(self.home / "staged"))
        replace_dataset(partitions(self.timeline), str(self.home / "state"))

    def history(self) -> None:
        replace_dataset(partition_changes(self.timeline), str(self.home / "history"))

    def dump_log_json(self) -> None:
        segment = next(self.log.glob("__cluster_metadata-0/*.log"))
        text = self.home / "dump.txt"
        flags = ["--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(segment)]
        with text.open("wb") as file:
            subprocess.run(java_command(TOOLS["dump-log"], *flags), stdout=file, check=True)
        lines = self.session.read.text(str(text)).where("value LIKE '%payload: {%'")
        payload = lines.selectExpr("regexp_extract(value, 'payload: (.*)$', 1) AS payload")
        rows = self.session.read.json(payload.rdd.map(lambda row: row[0]))
        rows.write.mode("overwrite").parquet(str(self.home / "dumped"))


def tables(log: Path, output: Path) -> None:
    """All tables of a log, from the shell."""
    command = [
        sys.executable,
        "-m",
        "kraftd.spark.main",
        "tables",
        "--input",
        str(log),
        "--output",
        str(output),
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def measure(work: Callable[[], object], records: int) -> dict[str, float]:
    """The costs of one run of a route."""
    with Meter() as meter:
        work()
    found = meter.figures()
    found["cpu_us_a_record"] = round(found["cpu_s"] / records * 1e6, 2)
    print(json.dumps({"route": getattr(work, "__name__", "tables"), "records": records, **found}), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--curve", default="1,2,5,10", help="millions of records for `columns`")
    parser.add_argument("--slow", type=float, default=1, help="millions of records for the slow routes")
    parser.add_argument("--partitions", type=float, default=1, help="millions of partitions for `state`")
    parser.add_argument("--only", default=",".join(ROUTES), help="which routes")
    options = parser.parse_args()
    chosen = options.only.split(",")
    home = Path(tempfile.mkdtemp(prefix="kraftd-bench-spark-"))
    figures: dict[str, Any] = {}
    try:
        warm = Routes(start_session("local[2]"), write_log(home / "warm", WARM), home / "out")
        warm.columns()
        warm.state()
        sizes = {float(text): ["columns"] for text in options.curve.split(",")}
        slow = [name for name in ROUTES[1:5] if name in chosen]
        sizes[options.slow] = ["columns", *slow]
        unit = min(sizes)
        one = write_log(home / "one", int(unit * MILLION))
        for millions, names in sorted(sizes.items()):
            log = repeat_log(one, home / f"log-{millions:g}", max(1, round(millions / unit)))
            routes = Routes(warm.session, log, home / "out")
            for name in names:
                figures[f"{name} {millions:g}M"] = measure(getattr(routes, name), routes.plan.end_offset)
            shutil.rmtree(home / "out")
            shutil.rmtree(log)
        if "state" in chosen:
            count = int(options.partitions * MILLION)
            routes = Routes(warm.session, write_log(home / "state", 2 * count, count), home / "out")
            for work in (routes.state, routes.history):
                figures[f"{work.__name__} {options.partitions:g}M"] = measure(work, routes.plan.end_offset)
        warm.session.stop()
        for count in TABLES if "tables" in chosen else ():
            log = write_log(home / f"tables-{count}", count, TABLES[count])
            figures[f"tables {count}"] = measure(partial(tables, log, home / "all"), count)
    finally:
        shutil.rmtree(home)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
