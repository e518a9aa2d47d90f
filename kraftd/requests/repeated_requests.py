"""Answers a request that equals the last one of its connection, while what it does can be done again.

A member of a stable group sends one heartbeat again and again, byte for byte except for the correlation id.
Its handler offers a way to take it once more, without decoding it or making another answer. A commit comes
again with other numbers: they are read at their places, and the rest is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.requests.call import Call
from kraftd.requests.events import FramesReceived
from kraftd.requests.kept_answer import KeptAnswer, kept_answer
from kraftd.wire.primitives import Buffer

MAX_REQUEST_BYTES = 512
MAX_VARIED_BYTES = 2_048
MAX_ANSWER_BYTES = 512
HEAD_BYTES = 8  # before what is compared: the API, its version and the correlation id

_KEY = Struct(">h")


class Repeatable(NamedTuple):
    """A request, and its answer while `again` returns true; it then has had its effect once more."""

    version: bytes
    rest: bytes
    answer: KeptAnswer
    again: Callable[[], bool]


class Varied(NamedTuple):
    """How a request may come with other numbers: pairs of an int64 and an int32.

    `places` finds them in a frame, from its end, none if there is no telling. `take` has the effect of a call
    with the int64s and the int32s of all pairs, and returns whether it could. The call is answered later.
    """

    places: Callable[[bytes], Sequence[int]]
    take: Callable[[Call, Sequence[int], Sequence[int]], bool]


class _Numbered:
    """A request that may come with other numbers; where they are is found out with the second of its size.

    constants: what all such requests share, by a layout that leaves out the numbers. numbers: the layout of
    the correlation id and the pairs; None at first.
    """

    __slots__ = ("answer", "call", "constants", "frame", "numbers", "shared", "size_bytes", "varied")

    def __init__(self, call: Call, frame: bytes, answer: KeptAnswer, varied: Varied) -> None:
        self.call = call
        self.frame = frame
        self.size_bytes = len(frame)
        self.answer = answer
        self.varied = varied
        self.numbers: Struct | None = None
        self.shared = Struct("")
        self.constants: tuple[object, ...] = ()

    def find_layout(self) -> Struct:
        """The layout of the numbers in a frame; without any, that of the correlation id alone."""
        at, shared, numbers = HEAD_BYTES, ">4s4x", ">4xi"
        for place in self.varied.places(self.frame):
            begin = self.size_bytes - place
            shared += f"{begin - at}s12x"
            numbers += f"{begin - at}xqi"
            at = begin + 12
        left = self.size_bytes - at
        self.numbers, self.shared = Struct(f"{numbers}{left}x"), Struct(f"{shared}{left}s")
        self.constants = self.shared.unpack(self.frame)
        return self.numbers


class RepeatedRequests:
    """The last such request of each connection."""

    def __init__(self, keys: Iterable[int]) -> None:
        self.apis = frozenset(_KEY.pack(key) for key in keys)
        self._last: dict[int, Repeatable] = {}
        self._numbered: dict[int, _Numbered] = {}

    def __repr__(self) -> str:
        return f"<RepeatedRequests of {len(self._last)} and {len(self._numbered)} connections>"

    def find(self, connection_id: int, frame: bytes) -> KeptAnswer | None:
        """The answer to a request that equals the last one and has had its effect again."""
        last = self._last.get(connection_id)
        if last is None or frame[HEAD_BYTES:] != last.rest or frame[:4] != last.version:
            return None
        if last.again():
            return last.answer
        del self._last[connection_id]
        return None

    def take_varied(self, event: FramesReceived, slot: int, frame: bytes) -> bool:
        """Take a request that equals one before but for its numbers; return whether it is taken."""
        one = self._numbered.get(event.connection_id)
        if one is None or one.size_bytes != len(frame):
            return False
        found = (one.numbers or one.find_layout()).unpack(frame)
        if one.shared.unpack(frame) != one.constants or len(found) == 1:
            return False
        former = one.call
        call = Call(
            event.connection_id,
            slot,
            event.listener,
            event.host,
            former.key,
            former.version,
            found[0],
            former.client_id,
            None,
            event.principal,
            None,
            event.arrived_ns,
            len(frame),
            False,
            False,
            one.answer,
        )
        if one.varied.take(call, found[1::2], found[2::2]):
            return True
        del self._numbered[event.connection_id]
        return False

    def keep(self, call: Call, frame: bytes, parts: list[Buffer]) -> None:
        """Keep the framed answer to the request in a frame, if that may come again and both are short."""
        if call.again is not None:
            if len(frame) <= MAX_REQUEST_BYTES and sum(map(len, parts)) <= MAX_ANSWER_BYTES:
                answer = kept_answer(call, parts)
                self._last[call.connection_id] = Repeatable(frame[:4], frame[HEAD_BYTES:], answer, call.again)
        elif (
            call.varied is not None
            and len(frame) <= MAX_VARIED_BYTES
            and sum(map(len, parts)) <= MAX_VARIED_BYTES
        ):
            self._numbered[call.connection_id] = _Numbered(call, frame, kept_answer(call, parts), call.varied)

    def closed(self, connection_id: int) -> None:
        """Forget a connection."""
        self._last.pop(connection_id, None)
        self._numbered.pop(connection_id, None)
