"""Producer ids, each given once: from blocks that the controller allocates to this broker (KIP-730)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraftd.wire.message import Message

ASK_AT = 0.9  # of a block is given: the next one is asked for, as Kafka does
MOST_WAITING = 10_000

Ask = Callable[[Message, Callable[[Message | None], None]], None]
Give = Callable[[int | None], None]


class ProducerIds:
    """`ask` asks the controller; `identity` is this broker's id and epoch."""

    def __init__(self, ask: Ask, identity: Callable[[], tuple[int, int]]) -> None:
        self._ask = ask
        self._identity = identity
        self._ids = range(0)
        self._next_ids = range(0)
        self._is_asking = False
        self._waiting: deque[Give] = deque()

    def __repr__(self) -> str:
        return f"<ProducerIds from {self._ids.start} on, {len(self._waiting)} producers wait>"

    def take(self, give: Give) -> None:
        """Give an id, at once or when a block has come; None if the controller gives none."""
        if not self._ids:
            self._ids, self._next_ids = self._next_ids, range(0)
        if self._ids:
            given, self._ids = self._ids[0], self._ids[1:]
            give(given)
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append(give)
        else:
            give(None)
        self._ask_in_time()

    def _ask_in_time(self) -> None:
        whole = self._block_size
        left = len(self._ids)
        if not self._is_asking and not self._next_ids and left <= whole * (1 - ASK_AT):
            self._is_asking = True
            broker_id, broker_epoch = self._identity()
            self._ask(AllocateProducerIdsRequest(broker_id, broker_epoch), self._answered)

    _block_size = 1_000

    def _answered(self, answer: Message | None) -> None:
        self._is_asking = False
        if isinstance(answer, AllocateProducerIdsResponse) and not answer.error_code:
            first = answer.producer_id_start
            self._next_ids = range(first, first + answer.producer_id_len)
            self._block_size = answer.producer_id_len
            waiting, self._waiting = self._waiting, deque()
            for give in waiting:
                self.take(give)
        else:
            waiting, self._waiting = self._waiting, deque()
            for give in waiting:
                give(None)
