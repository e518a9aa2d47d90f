"""Random logs cleaned here and by Kafka's cleaner: equal segments and indexes, byte for byte.

Other seeds, or more: ``KRAFTD_CLEANING_SEED``, ``KRAFTD_CLEANING_LOGS``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.log.data.data_log import DataLog
from kraftd.log.disk import RealDisk
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from tests.log.data.random_logs import Recorder, drive, files, recorded

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_CLEANING_SEED", "0"))
LOGS = int(os.environ.get("KRAFTD_CLEANING_LOGS", "24"))


class Kafka:
    """Kafka's cleaner in a process of its own."""

    def __init__(self, classes: Path) -> None:
        path = os.pathsep.join([str(classes), classpath()])
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        main = "org.apache.kafka.storage.internals.log.CleanerOracle"
        command = [str(find_java()), *QUICK_START, quiet, "-cp", path, main]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, *words: object) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        return self.process.stdout.readline().strip()

    def clean(self, log: DataLog, is_plain: bool, *words: object) -> list[str]:
        copy = Path(log.directory).parent / "copy" / "t-0"
        shutil.copytree(log.directory, copy)
        answer = self.ask(copy, *words)
        found = files(log.files.resources.disk, str(copy), is_plain)
        shutil.rmtree(copy)
        return [answer, *found]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    oracle = Kafka(compile_java(javac, Path(__file__).with_name("java") / "CleanerOracle.java"))
    yield oracle
    oracle.close()


@pytest.mark.parametrize("seed", range(SEED, SEED + LOGS))
def test_kafkas_cleaner_leaves_the_same_segments(tmp_path: Path, kafka: Kafka, seed: int) -> None:
    drive(RealDisk(), str(tmp_path), kafka, seed)


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_kafkas_cleaner_makes_what_was_recorded(
    tmp_path: Path, kafka: Kafka, path: Path, request: pytest.FixtureRequest
) -> None:
    """With --record what it makes now is kept, for the tests without Java."""
    recorder = Recorder(kafka)
    drive(RealDisk(), str(tmp_path), recorder, int(path.stem))
    if request.config.getoption("--record", default=False):
        path.write_text(recorder.text)
    assert recorder.text == path.read_text()
