"""The jars of Spark's own Kafka connector, which PySpark lacks: fetched once, as Kafka's own are.

Spark's POMs name another repository for their dependencies. So each artifact is named here, and fetched
without dependencies.
"""

from __future__ import annotations

from pathlib import Path

from testkit.fetch import cache_dir, copy_jars, locked

SPARK_VERSION = "4.2.0"
# The newest token provider is older than the newest connector; they work together.
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
_LAST = f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"


def connector_jars() -> list[Path]:
    """The connector, with the jars that it needs beside PySpark's own. Raises FetchError."""
    name = f"spark-kafka-{SPARK_VERSION}"
    libs = cache_dir() / name
    if not (libs / _LAST).exists():
        with locked(name):
            if not (libs / _LAST).exists():
                copy_jars(ARTIFACTS, libs, _LAST, alone=True)
    return sorted(libs.glob("*.jar"))
