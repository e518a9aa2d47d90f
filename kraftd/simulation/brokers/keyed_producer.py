"""A producer of records with keys, some of them tombstones, for a compacted topic. It sends a batch until its
fate is known, so the log may have it more than once.
"""

from __future__ import annotations

from typing import Any

from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.simulation.brokers.sender import Sender
from kraftd.simulation.checkers.brokers.compaction import Row
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.schedule import MS
from kraftd.wire.records import build_records_batch

COMPACTED, COMPACTED_PARTITIONS = "compacted", 2
KEYS = 6
RETRY_US = 100 * MS


class KeyedProducer(Sender):
    """See the module. `is_done`: since the world healed, a batch of it was taken."""

    def __init__(self, traffic: Any, index: int) -> None:
        super().__init__(traffic, traffic.world.rng("keyed producer", index))
        self.index = index
        self._sent_after_healing = False
        self._number = 0  # of the last record
        self._rows: list[Row] = []  # of the batch that is under way

    def _go_on(self) -> None:
        traffic = self.traffic
        if not traffic.running or self.is_done:
            return
        found = traffic.leader_of(COMPACTED, self.index)
        if found is None:
            self._later(RETRY_US)
        else:
            self._send(*found)

    def _send(self, side: Any, key: PartitionKey) -> None:
        if not self._rows:
            self._rows = [self._row() for _ in range(self.rng.choice((1, 2, 5)))]
            self._sent_after_healing = self.world.healed
        rows, checks = self._rows, self.traffic.compaction
        checks.sent(key, rows)
        now_ms = side.timer.now_ms() + side.timer.wall_ahead_ms()
        batch = build_records_batch([(now_ms, name, value, ()) for name, value in rows])
        part = PartitionProduceData(self.index, bytes(batch))
        request = ProduceRequest(None, -1, 1_000, [TopicProduceData("", key[0], [part])])

        def then(answer: Any) -> None:
            part: Any = None if answer is None else answer.responses[0].partition_responses[0]
            if part is None or part.error_code:
                self._later(RETRY_US)
                return
            checks.acknowledged(key, part.base_offset, rows)
            self._rows = []
            self.is_done = self._winds_down and self._sent_after_healing
            self._later(RETRY_US if self.world.healed else self.world.options.produce_gap_us)

        self.traffic.ask(side, [(request, then)])

    def _row(self) -> Row:
        self._number += 1
        name = b"key-%d" % self.rng.below(KEYS)
        return name, None if self.rng.chance(0.2) else b"%d" % self._number

    def __repr__(self) -> str:
        return f"<KeyedProducer of {COMPACTED}-{self.index}, record {self._number}>"
