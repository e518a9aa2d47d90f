"""`kraftd.spark.tables` and `format("kraft").option("table", ...)`: the way from a notebook or a job."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from kraftd.spark import cluster_tables, register, tables
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.replay import catalog
from kraftd.spark.replay.catalog import staged_replay
from kraftd.spark.replay.catalog import table as replayed_table
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.catalog import NAMES, table
from tests.spark.images import Rows, in_order
from tests.spark.logs import MS_PER_RECORD, START_MS
from tests.spark.test_tables import Story, timeline_of
from tests.spark.test_truth import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
COMPARED = (
    "partitions",
    "partition_intervals",
    "leader_moves",
    "audit",
    "configs",
    "quotas",
    "broker_sessions",
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("api") / "node", seed=11)


def rows_of(found: DataFrame) -> Rows:
    return in_order([row.asDict(recursive=True) for row in found.collect()])


def test_a_small_logs_tables_equal_those_of_parallel_plans(spark: SparkSession, story: Story) -> None:
    path = story.directory.path
    timeline = timeline_of(spark, path, story.committed, staged=path.parent / "parallel")
    with tables(spark, str(path), as_of=story.committed) as found:
        assert tuple(found) == NAMES and len(found) == len(NAMES)
        for name in COMPARED:
            assert found[name].sparkSession is spark
            assert rows_of(found[name]) == rows_of(table(name, timeline, [])), name
        assert found["records"].count() == story.committed + 1
        found.create_views("configs")
        assert spark.sql("SELECT count(*) FROM configs").first() == (found["configs"].count(),)
        scratch = Path(found.path("configs")).parent
        assert len(list(scratch.glob("configs/*.parquet"))) == 1
    assert not scratch.exists()


def test_the_few_records_of_a_large_log_are_replayed_for_sparks_tables(
    spark: SparkSession, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here every log is a large one: Spark makes the tables of partitions, from those that were replayed."""
    monkeypatch.setattr(cluster_tables, "is_small_log", lambda _: False)
    path = str(story.directory.path)
    log = committed_log(find_replicas([path]))
    replay = Replay(Extent(log, log.end_offset))
    with tables(spark, path) as found:
        for name in ("topic_history", "config_history", "broker_sessions", "partition_intervals"):
            rows = in_order(plain(name, replayed_table(name, replay, []).to_pylist()))
            assert in_order(plain(name, rows_of(found[name]))) == rows, name
        timeline = found._timeline
        assert staged_replay(timeline, whole=False) is not None
        monkeypatch.setattr(catalog, "MAX_RECORDS", 10)
        assert staged_replay(timeline, whole=False) is None


def test_a_table_is_a_data_source_as_of_an_offset_with_filters(spark: SparkSession, story: Story) -> None:
    register(spark)
    offset = story.quiet_offset(story.committed // 2)
    reader = spark.read.format("kraft").option("table", "topics").option("asOf", str(offset))
    found = reader.load(str(story.directory.path))
    living = {topic.name for topic in story.image(offset).topics.values()}
    assert {row["name"] for row in rows_of(found)} == living
    chosen = sorted(living)[:2]
    assert {row["name"] for row in rows_of(found.where(found["name"].isin(chosen)))} == set(chosen)
    assert found.where("partition_count < 0").count() == 0
    records = spark.read.format("kraft").load(str(story.directory.path))
    at = datetime.fromtimestamp((START_MS + 9 * MS_PER_RECORD) / 1000, UTC).isoformat()
    early = records.where(f"timestamp <= TIMESTAMP '{at}'")
    assert {row["offset"] for row in early.select("offset").collect()} == {
        row["offset"] for row in records.select("offset", "timestamp_ms").collect()
        if row["timestamp_ms"] <= START_MS + 9 * MS_PER_RECORD
    }  # fmt: skip
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW then USING kraft "
        f"OPTIONS (table 'topics', path '{story.directory.path}', asOf '{offset}')"
    )
    assert spark.sql("SELECT count(*) FROM then WHERE created_offset >= 0").first() == (len(living),)


def test_points_tables_and_options_that_are_unknown_are_refused(spark: SparkSession, story: Story) -> None:
    path = str(story.directory.path)
    for as_of, why in (
        ("yesterday", "^as_of=yesterday: .*neither an offset"),
        (10**9, ": as_of=1000000000 is beyond the end"),
        ("2001-01-01", ": as_of=2001-01-01T00:00:00.* is before"),
    ):
        with pytest.raises(InputError, match=why):
            tables(spark, path, as_of=as_of)
    with tables(spark, path) as found, pytest.raises(KeyError, match="there is no table"):
        found["tables"]
    register(spark)
    for options, why in (
        ({"table": "tables"}, "no such table"),
        ({"table": "topics", "asOf": "yesterday"}, "asOf=yesterday: .*neither an offset"),
        ({"table": "topics", "asOf": "1000000000"}, ": asOf=1000000000 is beyond the end"),
        ({"table": "topics", "endingOffset": "3"}, "is for records"),
        ({"asOf": "3"}, "is for tables"),
    ):
        with pytest.raises(PySparkException, match=why):
            spark.read.format("kraft").options(**options).load(path).collect()


def test_a_warning_names_the_offset_of_a_time(spark: SparkSession, story: Story) -> None:
    at = datetime.fromtimestamp((START_MS + 9 * MS_PER_RECORD) / 1000, UTC)
    with (
        pytest.warns(UserWarning, match="^as_of=.* is offset"),
        tables(spark, str(story.directory.path), as_of=at) as found,
    ):
        times = {row["offset"]: row["timestamp_ms"] for row in rows_of(found["records"])}
    assert max(times.values()) <= START_MS + 9 * MS_PER_RECORD and max(times) == found.as_of
