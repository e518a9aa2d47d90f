"""One producer of a partition: idempotent or not, with acks of 1 or -1."""

from __future__ import annotations

from typing import Any

from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.simulation.brokers.sender import Sender
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.schedule import MS
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch

RETRY_US = 100 * MS
FORGOTTEN = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)


class Producer(Sender):
    """See the module. An idempotent one sends a batch until its fate is known; another may give it up.

    `is_done`: since the world healed, a record of it was taken, or damage prevents that.
    """

    def __init__(self, traffic: Any, number: int, topic: str, index: int) -> None:
        super().__init__(traffic, traffic.world.rng("producer", number))
        self.number = number
        self.topic, self.index = topic, index
        self.is_idempotent = self.rng.chance(0.7)
        self.acks = self.rng.choice((-1, -1, 1))
        if self.is_idempotent and self.world.options.replica_count > 1:
            self.acks = -1  # a new leader may not know what only the old one had
        self.is_lasting = self.acks < 0 or self.world.options.replica_count == 1
        self._sent_after_healing = False
        self._number = 0  # of the last record
        self._values: list[bytes] = []  # of the batch that is under way
        self._producer_id, self._epoch, self._sequence = -1, -1, 0
        self._topic_id: bytes | None = None  # that its sequence is of
        self._losses = 0  # of the partition, when the producer's id began

    def _go_on(self) -> None:
        traffic = self.traffic
        if not traffic.running or self.is_done:
            return
        found = traffic.leader_of(self.topic, self.index)
        if found is None:
            self._later(RETRY_US)
            return
        side, key = found
        if self._winds_down and traffic.partitions.is_damaged(key):
            self.is_done = True
        elif self.is_idempotent and (self._producer_id < 0 or self._topic_id != key[0]):
            self._begin(side, key)
        else:
            self._send(side, key)

    def _begin(self, side: Any, key: PartitionKey) -> None:
        def then(answer: Any) -> None:
            if answer is not None and not answer.error_code:
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                self._sequence, self._topic_id, self._values = 0, key[0], []
                self._losses = self.traffic.partitions.of(key).losses
            self._later(RETRY_US)

        self.traffic.ask(side, [(InitProducerIdRequest(None, 60_000), then)])

    def _send(self, side: Any, key: PartitionKey) -> None:
        if not self._values:
            first = self._number + 1
            self._number += self.rng.choice((1, 1, 2, 5))
            self._values = [b"p%d-%d" % (self.number, n) for n in range(first, self._number + 1)]
            self._sent_after_healing = self.world.healed
        now_ms = side.timer.now_ms() + side.timer.wall_ahead_ms()
        requests: list[Any] = [
            (self._request(key, self._values, now_ms), lambda it: self._answered(side, key, it))
        ]
        if not self.is_idempotent and self.rng.chance(0.2):
            # A second request on the same connection: both arrive together.
            self._number += 1
            extra = [b"p%d-%d" % (self.number, self._number)]
            requests.append((self._request(key, extra, now_ms), lambda it: self._extra(key, extra, it)))
        self.traffic.ask(side, requests)

    def _request(self, key: PartitionKey, values: list[bytes], now_ms: int) -> ProduceRequest:
        batch = build_records_batch(
            [(now_ms, None, value, ()) for value in values],
            producer_id=self._producer_id if self.is_idempotent else -1,
            producer_epoch=self._epoch if self.is_idempotent else -1,
            base_sequence=self._sequence if self.is_idempotent else -1,
        )
        part = PartitionProduceData(key[1], bytes(batch))
        return ProduceRequest(None, self.acks, 1_000, [TopicProduceData("", key[0], [part])])

    def _extra(self, key: PartitionKey, values: list[bytes], answer: Any) -> None:
        part = None if answer is None else answer.responses[0].partition_responses[0]
        if part is not None and not part.error_code and self.is_lasting:
            self.traffic.partitions.acknowledged(key, part.base_offset, values, once=False)

    def _answered(self, side: Any, key: PartitionKey, answer: Any) -> None:
        kinds, partitions = self.world.trace.kinds, self.traffic.partitions
        part: Any = None if answer is None else answer.responses[0].partition_responses[0]
        code = None if part is None else part.error_code
        if code == ErrorCode.NONE:
            if part.base_offset >= 0 and self.is_lasting:
                partitions.acknowledged(key, part.base_offset, self._values, once=self.is_idempotent)
            kinds["records acknowledged"] += 1
            self._taken()
            return
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._taken()
            return
        if code == ErrorCode.KAFKA_STORAGE_ERROR:
            kinds["records refused by a disk"] += 1
        elif code in FORGOTTEN and not self.traffic.leads(side, key):
            kinds["producer unknown to a former leader"] += 1
        elif code in FORGOTTEN:
            known = partitions.of(key)
            if known.losses == self._losses and known.damaged_from is None:
                partitions.fail("P2", f"{self!r}: {known!r} has forgotten the producer: error {code}")
            self._producer_id = -1
        elif code == ErrorCode.UNKNOWN_TOPIC_ID:
            self._producer_id = -1  # the topic may be gone
        if not self.is_idempotent and self.rng.chance(0.3):
            self._values = []  # given up
        self._later(RETRY_US)

    def _taken(self) -> None:
        self._sequence += len(self._values)
        self._values = []
        self.is_done = self._winds_down and self._sent_after_healing
        self._later(RETRY_US if self.world.healed else self.world.options.produce_gap_us)

    def __repr__(self) -> str:
        kind = "idempotent" if self.is_idempotent else "plain"
        return f"<{kind} Producer {self.number} of {self.topic}-{self.index}, record {self._number}>"
