"""One Spark session for the tests of a worker.

Without the extra kraftd[spark] the tests are left out; in CI they then fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.controller.oracle import ControllerOracle
    from tests.spark.three_days import History

if find_spec("pyspark") is None and not os.environ.get("CI"):
    collect_ignore_glob = ["test_*.py"]


# The jobs of tests are short: one compiler tier and one collector thread cost a third less CPU.
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Compiling plans for a few hundred rows costs far more than interpreting them.
_SETTINGS = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="package", autouse=True)
def jvm_options() -> Iterator[None]:
    """Every JVM of these tests starts with these options: drivers, masters, workers and executors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", _JVM_OPTIONS)
        yield


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """A session of two threads and few shuffle partitions, with Spark's Kafka connector and Delta Lake."""
    from kraftd.spark.session import start_session
    from testkit.connector import connector_jars, delta_jars

    jars = [*connector_jars(), *delta_jars()]
    session = start_session("local[2]", "tests", jars=",".join(map(str, jars)))
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    yield session
    session.stop()


@pytest.fixture(scope="package")
def oracle() -> Iterator[ControllerOracle]:
    """Apache Kafka's controller, for `kafka_log`."""
    from tests.controller.oracle import ControllerOracle

    oracle = ControllerOracle()
    yield oracle
    oracle.close()


@pytest.fixture(scope="package")
def history(oracle: ControllerOracle, tmp_path_factory: pytest.TempPathFactory) -> History:
    """Three days of a cluster."""
    from tests.spark.three_days import History

    return History(oracle, tmp_path_factory.mktemp("history") / "node")
