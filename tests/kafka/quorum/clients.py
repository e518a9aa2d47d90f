"""Ordinary clients: one creates topics, one writes, one reads; none of them may fail."""

from __future__ import annotations

import itertools
import operator
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.process import wait_until
from testkit.quorum import Quorum

TOPIC = "stream"
# How long Kafka's own clients retry by default (default.api.timeout.ms, delivery.timeout.ms).
_WAIT_S = 60
_PARTITIONS = 3


class Clients:
    """Counts of what was created, written and read so far, and every failure that a client has reported.

    Clients retry as they do by default; only what they report then counts. Without other `bootstrap` servers
    they bootstrap from the brokers.
    """

    def __init__(self, quorum: Quorum, bootstrap: str = "") -> None:
        servers = bootstrap or ",".join(broker.address for broker in quorum.brokers.values())
        self._common = {"bootstrap.servers": servers, "log_level": 0}
        self.failures: list[str] = []
        self.created, self.written, self.read = 0, 0, 0
        self._stopping = threading.Event()
        quorum.create_topic(TOPIC, partitions=_PARTITIONS, replication_factor=len(quorum.brokers))
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._create, self._write, self._consume)
        ]

    def __repr__(self) -> str:
        return f"<Clients created {self.created}, wrote {self.written}, read {self.read}: {self.failures}>"

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(2 * _WAIT_S)

    def wait_for_more(self, count: int = 10) -> None:
        """Wait until this many more topics were created, and records written and read."""
        aims = self.created + count, self.written + count, self.read + count

        def reached() -> bool:
            so_far = self.created, self.written, self.read
            return bool(self.failures) or all(map(operator.ge, so_far, aims))

        wait_until(reached, f"{count} more are created, written and read: {self!r}", 2 * _WAIT_S)
        assert self.failures == []

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except KafkaException as error:
            self.failures.append(f"{work.__name__}: {error}")

    def _create(self) -> None:
        admin = AdminClient(self._common)
        for number in itertools.count():
            if self._stopping.wait(0.05):
                return
            deadline_s = time.monotonic() + _WAIT_S
            while not self._try_to_create(admin, f"made-{number}", deadline_s):
                self._stopping.wait(0.1)
            self.created += 1

    def _try_to_create(self, admin: AdminClient, name: str, deadline_s: float) -> bool:
        """Send one request; return false if it must be repeated, as Kafka's own client would do."""
        [future] = admin.create_topics(
            [NewTopic(name, 1, 1)], request_timeout=_WAIT_S, operation_timeout=_WAIT_S
        ).values()
        try:
            future.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                return True  # an earlier request succeeded, but its answer was lost
            if time.monotonic() < deadline_s and (error.args[0].retriable() or code == KafkaError._TRANSPORT):
                return False
            raise
        return True

    def _write(self) -> None:
        producer = Producer({**self._common, "enable.idempotence": True, "linger.ms": 1})
        while not self._stopping.wait(0.02):
            producer.produce(TOPIC, b"%d" % self.written, on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(_WAIT_S)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.written += 1
        else:
            self.failures.append(f"written: {error}")

    def _consume(self) -> None:
        settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer({**self._common, **settings})
        consumer.subscribe([TOPIC])
        while not self._stopping.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read += 1
            elif message is not None and not message.error().retriable():
                self.failures.append(f"read: {message.error()}")
        consumer.close()
