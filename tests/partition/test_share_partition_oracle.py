"""Random share consumers, here and at Apache Kafka's own share partition: equal records and answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from tests.partition.share_worlds import Recorder, World, drive, recorded

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_PARTITION_SEED") or 0)
WORLDS = int(os.environ.get("KRAFTD_PARTITION_WORLDS") or 40)


class Kafka:
    """Kafka's share partition in a process of its own."""

    def __init__(self, classes: Path) -> None:
        path = os.pathsep.join([str(classes), classpath()])
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        self.process = subprocess.Popen(
            [str(find_java()), *QUICK_START, quiet, "-cp", path, "kafka.server.share.SharePartitionOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: object) -> list[str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n").split(" ")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    oracle = Kafka(compile_java(javac, Path(__file__).with_name("java") / "SharePartitionOracle.java"))
    yield oracle
    oracle.close()


@pytest.mark.parametrize("world", range(SEED, SEED + WORLDS))
def test_members_get_what_kafka_gives_them__kip932(kafka: Kafka, world: int) -> None:
    drive(World(kafka, Random(world)))


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_kafka_answers_as_was_recorded(kafka: Kafka, path: Path, request: pytest.FixtureRequest) -> None:
    """With --record what it answers now is kept, for the tests without Java."""
    recorder = Recorder(kafka)
    drive(World(recorder, Random(int(path.stem))))
    if request.config.getoption("--record", default=False):
        path.write_text(recorder.text)
    assert recorder.text == path.read_text()
