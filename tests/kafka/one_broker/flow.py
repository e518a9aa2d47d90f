"""An idempotent producer and a member of a group that go on while their broker is replaced by another."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from testkit.process import wait_until

TOPIC, GROUP, PARTITIONS = "flow", "flow-readers", 2
PATIENCE_S = 90
RECORDS_PER_COMMIT = 20


class Flow:
    """Numbers, from 0 on, are written until `finish`, and are read and committed by a group of one."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[int] = []
        self.failures: list[object] = []
        self.read: list[tuple[int, int, int]] = []  # partition, offset, number
        self.committed = dict.fromkeys(range(PARTITIONS), 0)
        self._bootstrap = bootstrap
        self._ends = {"writer": threading.Event(), "reader": threading.Event()}
        self._threads = [threading.Thread(target=work) for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def __repr__(self) -> str:
        return f"<Flow, {len(self.acknowledged)} acknowledged, {len(self.read)} read>"

    def _write(self) -> None:
        # A snapshot of producers keeps the last batch of each. A stop of a stock broker may lose answers to
        # two batches. The next broker, of either kind, then refuses the retry of the first: out of order.
        config = {"bootstrap.servers": self._bootstrap, "message.timeout.ms": PATIENCE_S * 1000}
        config |= {"enable.idempotence": True, "max.in.flight": 1, "reconnect.backoff.max.ms": 500}
        producer = Producer(config)

        def delivered(error: Any, message: Message) -> None:
            if error is not None:
                self.failures.append(error)
            else:
                self.acknowledged.append(int(message.value() or b"-1"))

        number = 0
        while not self._ends["writer"].is_set():
            value = str(number).encode()
            producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=delivered)
            producer.poll(0.005)
            number += 1
        producer.flush(PATIENCE_S)

    def _read(self) -> None:
        def noted(error: Any, partitions: list[TopicPartition]) -> None:
            for one in partitions:
                if error is None and one.error is None:
                    self.committed[one.partition] = one.offset

        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1_000,
                "on_commit": noted,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._ends["reader"].is_set():
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None and offset is not None and value is not None
            self.read.append((partition, offset, int(value)))
            if len(self.read) % RECORDS_PER_COMMIT == 0:
                consumer.commit(asynchronous=True)
        consumer.close()

    def wait_for_more(self) -> None:
        """Wait until more records were acknowledged, and those were read and committed."""
        end = len(self.acknowledged) + 50
        wait_until(lambda: len(self.acknowledged) >= end, f"{end} records are acknowledged", PATIENCE_S)
        needed = max(self.acknowledged[:end])
        wait_until(lambda: any(one[2] >= needed for one in self.read[-500:]), "they are read", PATIENCE_S)
        before = dict(self.committed)
        wait_until(lambda: self.committed != before, "an offset is committed", PATIENCE_S)

    def finish(self) -> None:
        """End the writer; once all of its records are read, the reader."""
        self._ends["writer"].set()
        self._threads[0].join()
        numbers = {*self.acknowledged}
        wait_until(lambda: numbers <= {one[2] for one in self.read}, "all records are read", PATIENCE_S)
        self.stop()

    def stop(self) -> None:
        for end in self._ends.values():
            end.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """No record was refused, lost, doubled or out of order; the group has skipped none."""
        assert self.failures == []
        assert sorted(self.acknowledged) == list(range(len(self.acknowledged)))
        logs: dict[int, dict[int, int]] = {index: {} for index in range(PARTITIONS)}
        for partition, offset, number in self.read:
            assert logs[partition].setdefault(offset, number) == number, "an offset has two records"
        for index, log in logs.items():
            assert sorted(log) == list(range(len(log))), f"gaps in what is read of partition {index}"
            expected = [number for number in range(len(self.acknowledged)) if number % PARTITIONS == index]
            assert [log[offset] for offset in sorted(log)] == expected
