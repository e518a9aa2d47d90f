"""A real standalone cluster, one master and two workers on loopback, makes the tables of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

from kraftd.spark.cluster_tables import write_small_tables
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from testkit.process import free_port, wait_until
from tests.spark.test_planning import written

pytestmark = pytest.mark.spark
TABLES = ("records", "topics")


class StandaloneCluster:
    """A master and its workers, as children of this process."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, free_port()
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the master, then two workers of one core each."""
        options = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._start("master", "org.apache.spark.deploy.master.Master", *options, "--port", str(self.port))
        wait_until(
            lambda: "Started daemon" in self.log("master") or "I have been elected" in self.log("master"),
            "a master",
        )
        for name in ("one", "two"):
            small = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.home / name)]
            self._start(name, "org.apache.spark.deploy.worker.Worker", *options, *small, self.url)
        for name in ("one", "two"):
            wait_until(lambda name=name: "Successfully registered" in self.log(name), f"worker {name}")

    def log(self, name: str) -> str:
        """The output of a process."""
        return (self.home / f"{name}.log").read_text()

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(30)

    def _start(self, name: str, *arguments: str) -> None:
        script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        with (self.home / f"{name}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen([script, *arguments], stdout=log, stderr=log, env=environment)
            )


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[StandaloneCluster]:
    cluster = StandaloneCluster(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.mark.thorough
def test_a_cluster_makes_the_tables_that_one_process_makes(
    standalone: StandaloneCluster, tmp_path: Path
) -> None:
    directory = written(tmp_path / "log")
    output, here = tmp_path / "cluster", tmp_path / "here"
    arguments = ["--input", directory.path, "--output", output, "--tables", ",".join(TABLES)]
    command = [sys.executable, "-m", "kraftd.spark.main", "tables", "--master", standalone.url]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    log = committed_log(find_replicas([str(directory.path)]))
    write_small_tables(Extent(log, log.end_offset), [log.replica], str(here), TABLES, lambda _: None)
    for table in TABLES:
        ours, theirs = (ds.dataset(str(each / table)).to_table() for each in (here, output))
        key = ours.column_names[0]
        assert theirs.cast(ours.schema).sort_by(key).equals(ours.sort_by(key)), table
    assert ds.dataset(str(output / "records")).count_rows() == directory.end_offset
