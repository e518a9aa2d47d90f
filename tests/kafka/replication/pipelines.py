"""Clients that copy a topic exactly once, Java's and librdkafka's, and a group that commits."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from testkit.process import Process

KEYS = 20  # of a compacted topic, a partition
ABORTED = b"aborted"  # what no reader of committed records sees
_JAVA = Path(__file__).parents[1] / "java" / "Etl.java"
TRANSACTION_S = 20  # its timeout
STUCK_S = 40.0  # longer than any call of a worker
_ABORTS = 1 / 6  # of all transactions


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
        assert "all have ended" in self._process.log_text(), self._process.log_tail()

    def kill(self) -> None:
        self._process.kill()

    def restarts(self) -> int:
        """How often a worker began again after an error."""
        return self._process.log_text().count("begins again")

    def last_errors(self) -> list[str]:
        return [line for line in self._process.log_text().splitlines() if " again: " in line][-5:]


class _Worker:
    """A thread that copies, with its present consumer. `alive_s`: when it last began a transaction."""

    thread: threading.Thread

    def __init__(self, transactional_id: str, rng: random.Random) -> None:
        self.transactional_id, self.rng = transactional_id, rng
        self.consumer: Consumer | None = None
        self.alive_s = time.monotonic()
        self.is_replaced = False

    def __repr__(self) -> str:
        return f"<_Worker {self.transactional_id}>"


class LibrdkafkaPipeline:
    """Members of a group in threads, with librdkafka.

    librdkafka 2.16 ends its handle of a broker that metadata names no more, as while it starts again. If that
    broker was the group's coordinator, `send_offsets_to_transaction` may wait for the ended handle: it sends
    no TxnOffsetCommit, and does not return after its timeout either. So a worker that does nothing for
    `stuck_s` is replaced by one of its transactional id, and becomes a zombie: after a roll the group may
    catch up that much later.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        protocol: str,
        topics: Topics,
        workers: int,
        seed: int,
        stuck_s: float = STUCK_S,
    ) -> None:
        self.group, self.topics = group, topics
        self._stuck_s = stuck_s
        self.errors: list[str] = []
        self.commits = 0
        self._bootstrap, self._protocol = bootstrap, protocol
        self._stopped = threading.Event()
        self._rngs = [random.Random(seed + n) for n in range(workers)]
        self._workers = [self._replaced(number) for number in range(workers)]
        self._watch = threading.Thread(target=self._replace_stuck, daemon=True)
        self._watch.start()

    def __repr__(self) -> str:
        return f"<LibrdkafkaPipeline {self.group}>"

    def stop(self) -> None:
        self._stopped.set()
        self._watch.join(90)
        for worker in self._workers:
            worker.thread.join(90)
            assert not worker.thread.is_alive(), self.errors[-3:]

    def kill(self) -> None:
        self._stopped.set()

    def restarts(self) -> int:
        return len(self.errors)

    def last_errors(self) -> list[str]:
        return self.errors[-5:]

    def _replaced(self, number: int) -> _Worker:
        worker = _Worker(f"{self.group}-{number}", self._rngs[number])
        worker.thread = threading.Thread(target=self._work, args=(worker,), daemon=True)
        worker.thread.start()
        return worker

    def _replace_stuck(self) -> None:
        while not self._stopped.wait(1):
            for number, worker in enumerate(self._workers):
                if time.monotonic() - worker.alive_s > self._stuck_s:
                    self.errors.append(f"{time.strftime('%X')} {worker.transactional_id} is stuck")
                    worker.is_replaced = True
                    if worker.consumer is not None:
                        worker.consumer.close()
                    self._workers[number] = self._replaced(number)

    def _work(self, worker: _Worker) -> None:
        session = {"session.timeout.ms": 6000} if self._protocol == "classic" else {}
        common = {"bootstrap.servers": self._bootstrap, "reconnect.backoff.max.ms": 1000, "log_level": 0}
        while not self._stopped.is_set() and not worker.is_replaced:
            consumer = worker.consumer = Consumer(
                {
                    **common,
                    **session,
                    "group.id": self.group,
                    "group.protocol": self._protocol,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                }
            )
            try:
                producer = Producer(
                    {
                        **common,
                        "transactional.id": worker.transactional_id,
                        "transaction.timeout.ms": TRANSACTION_S * 1000,
                    }
                )
                producer.init_transactions(30)
                consumer.subscribe([self.topics.source])
                while not self._stopped.is_set() and not worker.is_replaced:
                    worker.alive_s = time.monotonic()
                    self._copy(consumer, producer, worker.rng)
            except (KafkaException, RuntimeError) as error:  # RuntimeError: its consumer was closed
                self.errors.append(f"{time.strftime('%X')} {worker.transactional_id}: {error}")
            finally:
                worker.alive_s = time.monotonic()
                if not worker.is_replaced:
                    consumer.close()

    def _copy(self, consumer: Consumer, producer: Producer, rng: random.Random) -> None:
        """One transaction. After any error both clients are made anew: then the broker knows what counts."""
        messages = [one for one in consumer.consume(50, 0.2) if one.error() is None]
        if not messages:
            return
        aborts = rng.random() < _ABORTS
        producer.begin_transaction()
        following: dict[int, int] = {}
        for one in messages:
            number, partition = one.value(), one.partition()
            value = ABORTED if aborts else number
            producer.produce(self.topics.copy, value, partition=partition)
            producer.produce(self.topics.last, value, str(int(number) % KEYS), partition)
            following[partition] = one.offset() + 1
        source = self.topics.source
        offsets = [TopicPartition(source, partition, offset) for partition, offset in following.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
        if aborts:
            producer.flush(20)
            producer.abort_transaction(20)
            for at in consumer.committed(offsets, 20):
                consumer.seek(TopicPartition(source, at.partition, max(0, at.offset)))
            return
        while True:
            try:
                producer.commit_transaction(20)
                self.commits += 1
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self.errors.append(f"commits again: {error}")


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
