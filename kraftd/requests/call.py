"""A request on its way through the packages: its origin, its message, and the framing of its answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from struct import Struct
from typing import Any

import msgspec

from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.security.principals import ANONYMOUS, Principal
from kraftd.wire.api import ApiKey, is_known
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_response, framed_response
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer, put_uvarint
from kraftd.wire.slices import EncodedRows, encode_in_slices

_CORRELATION_ID = Struct(">i")
PRODUCE = int(ApiKey.PRODUCE)
# The error by which a standby refuses, if that is not NOT_CONTROLLER.
_WRONG_CONTROLLER = {int(ApiKey.DESCRIBE_QUORUM): ErrorCode.NOT_LEADER_OR_FOLLOWER}


class FrameMemo:
    """The last encoded answer of each version: parked fetches of many observers get equal answers."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Message, bytes, bytes]] = {}

    def frame(self, key: int, version: int, correlation_id: int, response: Message) -> bytes:
        """The framed answer in one piece; raises EncodeError."""
        known = self._last.get(version)
        if known is None or (known[0] is not response and known[0] != response):
            whole = b"".join(encode_response(key, version, correlation_id, response))
            self._last[version] = (response, whole[:4], whole[8:])
            return whole
        return known[1] + _CORRELATION_ID.pack(correlation_id) + known[2]


class Call(msgspec.Struct, eq=False, gc=False):
    """One request. Compared by identity; `envelope` is the Envelope that carried it, if one did.

    `message` is decoded with `version`; `slot` is its place among the requests of its connection.
    `arrived_ns` is of the runner's clock, 0 if nothing is measured. `settled` becomes true with its answer,
    even if that waits for a commit: a later fault is logged and not answered. `place` is where an AnswerMemo
    may keep the answer. `again` does what the request does once more, and returns whether the answer is the
    same; `varied` does so for one with other numbers. `is_large`: the lane of large requests serves it.
    `throttle_ms` is how long the requester's next large request has to wait: its answer says so, where
    the response can. `mute_ms` is how long its connection is not read once it is answered, for a quota;
    the answer says that, too. `by_broker`: the broker of this process passes it on to the controller.
    `refused_rows` are the responses to resources that a broker refused before it passed on the others.
    """

    connection_id: int
    slot: int
    listener: str
    host: str
    key: int
    version: int
    correlation_id: int
    client_id: str
    message: Any
    principal: Principal = ANONYMOUS
    envelope: Call | None = None
    arrived_ns: int = 0
    size_bytes: int = 0
    is_large: bool = False
    settled: bool = False
    place: Any = None
    again: Callable[[], bool] | None = None
    varied: Any = None
    throttle_ms: int = 0
    mute_ms: int = 0
    by_broker: bool = False
    refused_rows: Sequence[Any] = ()

    @property
    def is_one_way(self) -> bool:
        """Return whether the sender expects no answer: a Produce with acks=0."""
        return self.key == PRODUCE and self.message is not None and self.message.acks == 0

    def frame_repeated(self, response: Message, memo: FrameMemo) -> list[Buffer]:
        """As `frame`, for an answer that many calls get. Raises EncodeError."""
        if self.envelope is not None:
            return self.frame(response)
        return [memo.frame(self.key, self.version, self.correlation_id, response)]

    def frame(self, response: Message) -> list[Buffer]:
        """The answer as bytes to write, its size first; in an Envelope's answer if one carried the call.

        Raises EncodeError if the version cannot carry the response.
        """
        if self.throttle_ms or self.mute_ms or self.refused_rows:
            self._complete(response)
        parts = encode_response(self.key, self.version, self.correlation_id, response)
        outer = self.envelope
        if outer is None:
            return parts
        whole = b"".join(parts)
        return outer.frame(EnvelopeResponse(whole[4:], 0))

    def frame_with(self, response: Message, errors: Collection[int]) -> list[Buffer]:
        """As `frame`, for a response with these errors in it.

        If one of them says that a broker forwarded the request to the wrong controller, the Envelope is
        refused: the broker then looks for the active controller again.
        """
        outer = self.envelope
        if outer is not None and _WRONG_CONTROLLER.get(self.key, ErrorCode.NOT_CONTROLLER) in errors:
            return envelope_error(outer, ErrorCode.NOT_CONTROLLER)
        return self.frame(response)

    def frame_in_slices(
        self, response: Message, refused: EncodedRows | None = None
    ) -> Generator[None, None, list[Buffer]]:
        """As `frame`, as a generator, for a response that may be very large; consumes the response.

        `refused` are rows that follow those of the response.
        """
        if self.throttle_ms or self.mute_ms or self.refused_rows:
            self._complete(response)
        if refused is None:
            parts = yield from encode_in_slices(response, self.version)
        else:
            parts = yield from refused.behind_in_slices(response)
        parts = framed_response(self.key, self.version, self.correlation_id, parts)
        outer = self.envelope
        if outer is None:
            return parts
        return _enveloped(outer, parts)

    def _complete(self, response: Any) -> None:
        """What is of the request, not of its rule: the throttle time, and what was refused before."""
        if self.refused_rows:
            response.responses = [*response.responses, *self.refused_rows]
        if (self.throttle_ms or self.mute_ms) and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = max(response.throttle_time_ms, self.throttle_ms, self.mute_ms)

    def __repr__(self) -> str:
        name = ApiKey(self.key).name if is_known(self.key) else f"API {self.key}"
        carried = " in Envelope" if self.envelope is not None else ""
        return (
            f"<Call {name} v{self.version}{carried} of {self.client_id!r} at {self.host}, {self.principal}>"
        )


def _enveloped(outer: Call, parts: list[Buffer]) -> list[Buffer]:
    """An Envelope's answer around the framed one to the request that it carried, of which nothing is copied:
    a copy of 57 MB would hold the event loop for half a second.
    """
    parts[0] = parts[0][4:]  # without its size
    around = encode_bytes(EnvelopeResponse(b"", 0), outer.version)
    length = put_uvarint(sum(map(len, parts)) + 1)
    whole = [length, *parts, around[1:]]
    return framed_response(outer.key, outer.version, outer.correlation_id, whole)


def envelope_error(outer: Call, code: ErrorCode) -> list[Buffer]:
    """The answer to an Envelope whose inner request was not handled."""
    return outer.frame(EnvelopeResponse(None, int(code)))
