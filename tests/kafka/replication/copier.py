"""Copy a topic by transactions of librdkafka, as a process of its own: members of one group in threads.

``python -m tests.kafka.replication.copier BOOTSTRAP GROUP PROTOCOL SOURCE,COPY,LAST WORKERS SEED STUCK_S``
runs until SIGTERM. It says each second how many transactions were committed, and when a worker begins again.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.kafka.replication.pipelines import ABORTED, AGAIN, ENDED, KEYS, TRANSACTION_S, Topics

INIT_S = 30.0
MOST_PATIENCE_S = 120.0
_ABORTS = 1 / 6  # of all transactions


class _Worker:
    """A thread that copies, with its present consumer. `alive_s`: when it last began a transaction. It counts
    as stuck `patience_s` later.
    """

    thread: threading.Thread

    def __init__(self, transactional_id: str, rng: random.Random, patience_s: float) -> None:
        self.transactional_id, self.rng = transactional_id, rng
        self.patience_s = patience_s
        self.consumer: Consumer | None = None
        self.alive_s = time.monotonic()
        self.is_replaced = False

    def __repr__(self) -> str:
        return f"<_Worker {self.transactional_id}>"


class Copier:
    """Members of a group in threads.

    librdkafka 2.16 ends its handle of a broker that metadata names no more, as while it starts again. If that
    broker was the group's coordinator, `send_offsets_to_transaction` may wait for the ended handle: it sends
    no TxnOffsetCommit, and does not return after its timeout either. So a worker that does nothing for
    `stuck_s` is replaced by one of its transactional id, and becomes a zombie: after a roll the group may
    catch up that much later. Its successor gets twice the time until its first commit: on a busy machine
    workers that replace each other would never get to one.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        protocol: str,
        topics: Topics,
        workers: int,
        seed: int,
        stuck_s: float,
    ) -> None:
        self.group, self.topics = group, topics
        self._stuck_s = stuck_s
        self.commits = 0
        self._bootstrap, self._protocol = bootstrap, protocol
        self._stopped = threading.Event()
        self._rngs = [random.Random(seed + n) for n in range(workers)]
        self._workers = [self._replaced(number, stuck_s) for number in range(workers)]

    def __repr__(self) -> str:
        return f"<Copier {self.group}>"

    def run(self) -> None:
        """Say each second how far it is, and replace workers that are stuck, until `stop`."""
        while not self._stopped.wait(1):
            print(f"{self.commits} committed", flush=True)
            self._replace_stuck()
        for worker in self._workers:
            worker.thread.join(90)
            assert not worker.thread.is_alive(), f"{worker!r} does not end"
        print(f"{self.commits} committed", flush=True)

    def stop(self) -> None:
        self._stopped.set()

    def _begins_again(self, worker: _Worker, why: object) -> None:
        print(f"{time.strftime('%X')} {worker.transactional_id} {AGAIN}{why}", flush=True)

    def _replaced(self, number: int, patience_s: float) -> _Worker:
        worker = _Worker(f"{self.group}-{number}", self._rngs[number], patience_s)
        worker.thread = threading.Thread(target=self._work, args=(worker,), daemon=True)
        worker.thread.start()
        return worker

    def _replace_stuck(self) -> None:
        for number, worker in enumerate(self._workers):
            if time.monotonic() - worker.alive_s > worker.patience_s:
                self._begins_again(worker, "it is stuck")
                worker.is_replaced = True
                if worker.consumer is not None:
                    worker.consumer.close()
                self._workers[number] = self._replaced(number, min(2 * worker.patience_s, MOST_PATIENCE_S))

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
                worker.alive_s = time.monotonic() + INIT_S
                producer.init_transactions(INIT_S)
                consumer.subscribe([self.topics.source])
                while not self._stopped.is_set() and not worker.is_replaced:
                    worker.alive_s = time.monotonic()
                    self._copy(consumer, producer, worker)
            except (KafkaException, RuntimeError) as error:  # RuntimeError: its consumer was closed
                self._begins_again(worker, error)
            finally:
                worker.alive_s = time.monotonic()
                if not worker.is_replaced:
                    consumer.close()

    def _copy(self, consumer: Consumer, producer: Producer, worker: _Worker) -> None:
        """One transaction. After any error both clients are made anew: then the broker knows what counts."""
        messages = [one for one in consumer.consume(50, 0.2) if one.error() is None]
        if not messages:
            return
        aborts = worker.rng.random() < _ABORTS
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
                worker.patience_s = self._stuck_s
                return
            except KafkaException as error:
                if worker.is_replaced or not error.args[0].retriable():
                    raise
                self._begins_again(worker, f"its commit, {error}")


def main(words: list[str]) -> None:
    bootstrap, group, protocol, topics, workers, seed, stuck_s = words
    copier = Copier(
        bootstrap, group, protocol, Topics(*topics.split(",")), int(workers), int(seed), float(stuck_s)
    )
    signal.signal(signal.SIGTERM, lambda *_: copier.stop())
    copier.run()
    print(ENDED, flush=True)
    os._exit(0)  # threads of workers that were replaced may wait for ever


if __name__ == "__main__":
    main(sys.argv[1:])
