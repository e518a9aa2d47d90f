"""A real standalone cluster, one master and two workers on loopback, gives the same tables as local mode."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

from testkit.process import free_port, wait_until
from tests.spark.test_planning import written

pytestmark = pytest.mark.spark
TABLES = "records,topics"


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


def test_a_cluster_makes_the_same_tables_as_local_mode(standalone: StandaloneCluster, tmp_path: Path) -> None:
    directory = written(tmp_path / "log")
    outputs = {}
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    for name, master in (("cluster", standalone.url), ("local", "local[1]")):
        outputs[name] = tmp_path / f"out-{name}"
        arguments = [
            "--input",
            directory.path,
            "--output",
            outputs[name],
            "--tables",
            TABLES,
            "--master",
            master,
        ]
        command = [sys.executable, "-m", "kraftd.spark.main", "tables", *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
    for table in TABLES.split(","):
        rows = {name: ds.dataset(str(out / table)).to_table() for name, out in outputs.items()}
        keys = [(rows[name].column_names[0], "ascending") for name in ("cluster", "local")]
        assert rows["cluster"].sort_by(keys[:1]).equals(rows["local"].sort_by(keys[1:])), table
    assert ds.dataset(str(outputs["cluster"] / "records")).count_rows() == directory.end_offset
