"""Jars for Spark that PySpark lacks: fetched once, as Kafka's own are.

Spark's POMs name another repository for their dependencies. So each artifact is named here, and fetched
without dependencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testkit.fetch import cache_dir, copy_jars, locked

SPARK_VERSION = "4.2.0"
DELTA_VERSION = "4.4.0"
Artifact = tuple[str, str, str]
"""Group, name and version in Maven's words."""
# The newest token provider is older than the newest connector; they work together.
_CONNECTOR: tuple[Artifact, ...] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
_DELTA: tuple[Artifact, ...] = (
    ("io.delta", "delta-spark_4.2_2.13", DELTA_VERSION),
    ("io.delta", "delta-storage", DELTA_VERSION),
)


def connector_jars() -> list[Path]:
    """Spark's own Kafka connector, with the jars that it needs beside PySpark's own. Raises FetchError."""
    return _jars(f"spark-kafka-{SPARK_VERSION}", _CONNECTOR)


def delta_jars() -> list[Path]:
    """Delta Lake for Spark, with the jar that it needs. Raises FetchError."""
    return _jars(f"spark-delta-{DELTA_VERSION}", _DELTA)


def _jars(folder: str, artifacts: Sequence[Artifact]) -> list[Path]:
    """The jars of a folder of the cache, fetched first if it lacks them. The first artifact is moved last."""
    libs = cache_dir() / folder
    _, name, version = artifacts[0]
    last = f"{name}-{version}.jar"
    if not (libs / last).exists():
        with locked(folder):
            if not (libs / last).exists():
                copy_jars(artifacts, libs, last, alone=True)
    return sorted(libs.glob("*.jar"))
