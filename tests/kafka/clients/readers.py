"""librdkafka's consumer of the metadata log, which keeps all that it reads, from the log's beginning."""

from __future__ import annotations

import threading

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kraftd.types import METADATA_TOPIC

SETTINGS = {
    "group.id": "none",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # a truncated log becomes an error
    "socket.timeout.ms": 5000,  # how long a frozen node delays it
    "topic.metadata.refresh.interval.ms": 1000,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,
}
WAIT_S = 20


class LogReader(threading.Thread):
    """Reads the log until it is stopped.

    `seen` are offsets and values in the order in which they came. `skipped` are pairs of offsets, from which
    and to which it skipped records that the log no longer had. `failures` are the errors that must not occur.
    """

    def __init__(self, name: str, bootstrap: str, client_id: str = "rdkafka") -> None:
        super().__init__(name=name, daemon=True)
        self.seen: list[tuple[int, bytes]] = []
        self.skipped: list[tuple[int, int]] = []
        self.failures: list[str] = []
        self.epoch = -1
        self._servers, self._client_id = bootstrap, client_id
        self._stopping = threading.Event()

    def __repr__(self) -> str:
        at = self.seen[-1][0] if self.seen else None
        return f"<LogReader {self.name} at {at} of epoch {self.epoch}, skipped {self.skipped}>"

    def run(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._servers, "client.id": self._client_id, **SETTINGS})
        consumer.assign([TopicPartition(METADATA_TOPIC, 0, 0)])
        while not self._stopping.is_set() and not self.failures:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                self._take(message.offset(), message.leader_epoch(), bytes(message.value() or b""))
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._continue_at_log_start(consumer)
            elif not (error.retriable() or error.code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)):
                self.failures.append(f"{error!r}")
        consumer.close()

    @property
    def position(self) -> int:
        """The offset that it reads next, without regard to control records."""
        read = self.seen[-1][0] + 1 if self.seen else 0
        return max(read, self.skipped[-1][1]) if self.skipped else read

    def stop(self) -> None:
        self._stopping.set()
        self.join(WAIT_S)
        if self.is_alive():
            self.failures.append("it hangs")

    def _take(self, offset: int | None, epoch: int | None, value: bytes) -> None:
        assert offset is not None
        if offset < self.position:
            self.failures.append(f"{offset} came at {self.position}")
        if epoch is not None:
            if epoch < self.epoch:
                self.failures.append(f"{offset} is of epoch {epoch}, after {self.epoch}")
            self.epoch = epoch
        self.seen.append((offset, value))

    def _continue_at_log_start(self, consumer: Consumer) -> None:
        """Continue at the log's new start. A log that ends before the reader's position is a failure."""
        try:
            start, _ = consumer.get_watermark_offsets(TopicPartition(METADATA_TOPIC, 0), timeout=10)
        except KafkaException:
            start = -1  # asked again after the next error
        if start > self.position:
            self.skipped.append((self.position, start))
        elif start >= 0:
            self.failures.append(f"{self.position} is out of range of a log that begins at {start}")
        consumer.assign([TopicPartition(METADATA_TOPIC, 0, self.position)])
