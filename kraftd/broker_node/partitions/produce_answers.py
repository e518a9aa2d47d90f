"""The answers to Produce requests whose records were taken, of one partition: encoded once, then filled in.

All of them are the same for a partition and a version, but for the correlation id and three numbers.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kraftd.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import encode_response
from kraftd.wire.primitives import Buffer

if TYPE_CHECKING:
    from kraftd.requests.call import Call

_KEY = int(ApiKey.PRODUCE)
FIRST_WITH_LOG_START = 5
# Numbers of an answer that stand nowhere else in it, whatever its topic.
_NUMBERS = 0x0102030405060708, 0x1112131415161718, 0x2122232425262728


class ProduceAnswers:
    """Encodes the answers of one version for one partition, which is that of the request of a first call."""

    __slots__ = ("_head", "_layout", "_middle", "_tail", "_with_log_start")

    def __init__(self, call: Call) -> None:
        version = call.version
        (topic,) = call.message.topic_data
        (partition,) = topic.partition_data
        row = PartitionProduceResponse(partition.index, 0, *_NUMBERS)
        response = ProduceResponse([TopicProduceResponse(topic.name, topic.topic_id, [row])])
        whole = b"".join(encode_response(_KEY, version, 0, response))
        self._with_log_start = version >= FIRST_WITH_LOG_START
        count = 3 if self._with_log_start else 2
        numbers = Struct(f">{count}q").pack(*_NUMBERS[:count])
        at = whole.rindex(numbers)  # a topic's name comes before them
        self._head, self._middle, self._tail = whole[:4], whole[8:at], whole[at + len(numbers) :]
        self._layout = Struct(f">4si{len(self._middle)}s{count}q{len(self._tail)}s")

    def encoded(
        self, correlation_id: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> list[Buffer]:
        """The framed answer, its size first."""
        if self._with_log_start:
            return [
                self._layout.pack(
                    self._head, correlation_id, self._middle, base_offset, log_append_time_ms,
                    log_start_offset, self._tail,
                )
            ]  # fmt: skip
        return [
            self._layout.pack(
                self._head, correlation_id, self._middle, base_offset, log_append_time_ms, self._tail
            )
        ]

    def __repr__(self) -> str:
        return f"<ProduceAnswers of {self._layout.size} bytes>"
