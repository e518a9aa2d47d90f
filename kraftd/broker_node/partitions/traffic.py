"""What producers write and readers get, by topic: the numbers behind Kafka's BrokerTopicMetrics."""

from __future__ import annotations

from kraftd.partition.validation import OF_THE_REQUEST, ProduceRefusal
from kraftd.wire.error_code import ErrorCode

COUNTED = (
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "failed_fetches",
    "failed_produces",
    "failed_share_acknowledgements",
    "failed_share_fetches",
    "fetches",
    "messages_in",
    "produces",
    "replication_bytes_in",
    "replication_bytes_out",
    "share_acknowledgements",
    "share_fetches",
)


class TopicTraffic:
    """One topic since its first log here was opened. Produces and fetches count once for each partition;
    those of share groups, once for each topic.
    """

    __slots__ = COUNTED

    def __init__(self) -> None:
        for name in COUNTED:
            setattr(self, name, 0)

    bytes_in: int
    bytes_out: int
    bytes_rejected: int  # of batches that are larger than max.message.bytes
    failed_fetches: int
    failed_produces: int
    failed_share_acknowledgements: int
    failed_share_fetches: int
    fetches: int
    messages_in: int
    produces: int
    replication_bytes_in: int
    replication_bytes_out: int
    share_acknowledgements: int
    share_fetches: int

    def appended(self, size_bytes: int, messages: int) -> None:
        """Count what a partition has taken. As in Kafka, also of a producer that has sent it before."""
        self.produces += 1
        self.bytes_in += size_bytes
        self.messages_in += messages

    def refused(self, refusal: ProduceRefusal, size_bytes: int) -> None:
        """Count what a partition has refused. As in Kafka, only what a broker does not expect counts as
        failed: not a partition that is led by another one, nor a batch that is too large or damaged.
        """
        if any(refusal is one for one in OF_THE_REQUEST.values()):
            return
        self.produces += 1
        self.failed_produces += refusal.shows_log_start
        if refusal.error is ErrorCode.MESSAGE_TOO_LARGE:
            self.bytes_rejected += size_bytes

    def __repr__(self) -> str:
        return f"<TopicTraffic {self.messages_in} messages in, {self.bytes_out} bytes out>"


class Traffic:
    """The topics of which this broker has logs, by name."""

    def __init__(self) -> None:
        self.by_topic: dict[str, TopicTraffic] = {}
        # Of the replication bytes, those of partitions to a replica that is being added.
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        self._removed = TopicTraffic()

    def of(self, topic: str) -> TopicTraffic:
        """A topic's numbers."""
        found = self.by_topic.get(topic)
        if found is None:
            found = self.by_topic[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone; it stays in the totals."""
        found = self.by_topic.pop(topic, None)
        if found is not None:
            for name in COUNTED:
                setattr(self._removed, name, getattr(self._removed, name) + getattr(found, name))

    def total(self, name: str) -> int:
        """A number of all topics, those that are gone included."""
        of_all: list[int] = [getattr(one, name) for one in (self._removed, *self.by_topic.values())]
        return sum(of_all)

    def __repr__(self) -> str:
        return f"<Traffic of {len(self.by_topic)} topics>"
