"""Answers a request that equals the last one of its connection, while what it does can be done again.

A member of a stable group sends one heartbeat again and again, byte for byte except for the correlation id.
Its handler offers a way to take it once more, without decoding it or making another answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import NamedTuple

from kraftd.requests.call import Call
from kraftd.requests.kept_answer import KeptAnswer, kept_answer
from kraftd.wire.primitives import Buffer

MAX_REQUEST_BYTES = 512
MAX_ANSWER_BYTES = 512

_KEY = Struct(">h")


class Repeatable(NamedTuple):
    """A request, and its answer while `again` returns true; it then has had its effect once more."""

    version: bytes
    rest: bytes
    answer: KeptAnswer
    again: Callable[[], bool]


class RepeatedRequests:
    """The last such request of each connection."""

    def __init__(self, keys: Iterable[int]) -> None:
        self.apis = frozenset(_KEY.pack(key) for key in keys)
        self._last: dict[int, Repeatable] = {}

    def __repr__(self) -> str:
        return f"<RepeatedRequests of {len(self._last)} connections>"

    def find(self, connection_id: int, frame: bytes) -> KeptAnswer | None:
        """The answer to a request that equals the last one and has had its effect again."""
        last = self._last.get(connection_id)
        if last is None or frame[8:] != last.rest or frame[:4] != last.version:
            return None
        if last.again():
            return last.answer
        del self._last[connection_id]
        return None

    def keep(self, call: Call, frame: bytes, parts: list[Buffer], again: Callable[[], bool]) -> None:
        """Keep the framed answer to the request in a frame, unless one of them is long."""
        if len(frame) <= MAX_REQUEST_BYTES and sum(map(len, parts)) <= MAX_ANSWER_BYTES:
            self._last[call.connection_id] = Repeatable(frame[:4], frame[8:], kept_answer(call, parts), again)

    def closed(self, connection_id: int) -> None:
        """Forget a connection."""
        self._last.pop(connection_id, None)
