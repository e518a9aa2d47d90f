"""Processes that copy a topic exactly once, with Java's client or librdkafka, and a group that commits."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from testkit.process import Process, wait_until

KEYS = 20  # of a compacted topic, a partition
ABORTED = b"aborted"  # what no reader of committed records sees
_JAVA = Path(__file__).parents[1] / "java" / "Etl.java"
_ROOT = Path(__file__).parents[3]
TRANSACTION_S = 20  # its timeout
STUCK_S = 40.0  # longer than any call of a worker
SILENT_S = 30.0  # a copier says something each second
AGAIN, ENDED = "begins again: ", "all have ended"  # what a pipeline writes


class Topics(NamedTuple):
    """What a pipeline reads, the copy it writes, and the last value of each key."""

    source: str
    copy: str
    last: str


class JavaPipeline:
    """Members of a group in one process of Java."""

    def __init__(
        self, home: Path, bootstrap: str, group: str, protocol: str, topics: Topics, workers: int, seed: int
    ) -> None:
        javac = find_javac()
        assert javac is not None, "no javac"
        path = f"{compile_java(javac, _JAVA)}:{classpath()}"
        words = [bootstrap, group, protocol, ",".join(topics), str(workers), str(seed), str(KEYS)]
        command = [str(find_java()), *QUICK_START, "-cp", path, "Etl", *words]
        self.group, self.topics = group, topics
        folder = home / group
        folder.mkdir()
        self._process = Process(group, folder, lambda: command)
        self._process.start()

    def __repr__(self) -> str:
        return f"<JavaPipeline {self.group} {self._process!r}>"

    def stop(self) -> None:
        self._process.stop(90)
        assert ENDED in self._process.log_text(), self._process.log_tail()

    def kill(self) -> None:
        self._process.kill()

    def restarts(self) -> int:
        """How often a worker began again after an error."""
        return self._process.log_text().count("begins again")

    def last_errors(self) -> list[str]:
        return [line for line in self._process.log_text().splitlines() if " again: " in line][-5:]


class LibrdkafkaPipeline:
    """Members of a group in one process of librdkafka, `copier`.

    A consumer of confluent-kafka 2.16 that is closed may wait for ever in the callback of a rebalance. It
    holds the lock of its interpreter then: no thread of the process goes on, not even one that keeps time.
    So the process is killed when it has been silent for `SILENT_S`, and started again.
    """

    def __init__(
        self,
        home: Path,
        bootstrap: str,
        group: str,
        protocol: str,
        topics: Topics,
        workers: int,
        seed: int,
        stuck_s: float = STUCK_S,
    ) -> None:
        self.group, self.topics = group, topics
        self._words = [bootstrap, group, protocol, ",".join(topics), str(workers)]
        self._seed, self._stuck_s = seed, stuck_s
        self._hangs = self._commits_before = 0
        self._is_over = threading.Event()
        folder = home / group
        folder.mkdir()
        self._process = Process(group, folder, self._command)
        self._process.environment["PYTHONPATH"] = str(_ROOT)
        self._process.start()
        self._watch = threading.Thread(target=self._replace_silent, daemon=True)
        self._watch.start()

    def __repr__(self) -> str:
        return f"<LibrdkafkaPipeline {self.group} {self._process!r}, {self._hangs} hangs>"

    def _command(self) -> list[str]:
        module = [sys.executable, "-m", "tests.kafka.replication.copier"]
        return [*module, *self._words, str(self._seed + self._hangs), str(self._stuck_s)]

    def _replace_silent(self) -> None:
        while not self._is_over.wait(1):
            if self._is_silent():
                self._process.kill()
                self._commits_before = self.commits
                self._hangs += 1
                self._process.start()

    def _is_silent(self) -> bool:
        last_s = max(self._process.started_s, time.monotonic() - self._age_of_log_s())
        return time.monotonic() - last_s > SILENT_S

    def _age_of_log_s(self) -> float:
        return time.time() - self._process.log.stat().st_mtime

    def stop(self) -> None:
        """End it; one that hangs is killed."""
        self._is_over.set()
        self._watch.join()
        self._process.signal(signal.SIGTERM)
        wait_until(lambda: not self._process.alive or self._is_silent(), f"{self!r} ends", 120)
        if self._process.alive:
            self._hangs += 1
            self._process.kill()
        else:
            assert ENDED in self._process.log_text(), self._process.log_tail()

    def kill(self) -> None:
        self._is_over.set()
        self._watch.join()
        self._process.kill()

    @property
    def commits(self) -> int:
        """How many transactions it has committed, as far as it has told."""
        counts = [line for line in self._process.log_text().splitlines() if line.endswith(" committed")]
        return self._commits_before + (int(counts[-1].split()[0]) if counts else 0)

    def restarts(self) -> int:
        """How often a worker or the process began again."""
        return self._process.log.read_text(errors="replace").count(AGAIN) + self._hangs

    def last_errors(self) -> list[str]:
        return [line for line in self._process.log_text().splitlines() if AGAIN in line][-5:]


class Committer:
    """A group without members whose offset only grows: each acknowledged commit must be found later."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.group, self.acknowledged, self.lost = group, -1, ""
        self._place = (topic, 0)
        self._stopped = threading.Event()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(0.02):
            number += 1
            try:
                at = TopicPartition(*self._place, number)
                done: Sequence[TopicPartition] = self._consumer.commit(offsets=[at], asynchronous=False)
                if done[0].error is None:
                    self.acknowledged = number
                if number % 5 == 0:
                    self.check()
            except KafkaException:
                continue
        self._consumer.close()

    def check(self) -> None:
        """Compare what is committed with what was acknowledged."""
        found = self._consumer.committed([TopicPartition(*self._place)], 20)[0].offset
        if found < self.acknowledged:
            self.lost = self.lost or f"{self.acknowledged} was committed, {found} is found"

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
