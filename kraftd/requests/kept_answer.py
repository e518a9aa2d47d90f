"""An answer that is kept for equal requests: all of it but the correlation id."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kraftd.requests.call import Call
from kraftd.wire.primitives import Buffer

_CORRELATION_ID = Struct(">i")


class KeptAnswer(NamedTuple):
    """An answer without its correlation id, whose place is between `size` and `rest`."""

    key: int
    version: int
    size: bytes
    rest: bytes

    def parts(self, correlation_id: int) -> list[Buffer]:
        """The answer to another request."""
        return [self.size, _CORRELATION_ID.pack(correlation_id), self.rest]


def kept_answer(call: Call, parts: list[Buffer]) -> KeptAnswer:
    """The framed answer to a call."""
    whole = b"".join(parts)
    return KeptAnswer(call.key, call.version, whole[:4], whole[8:])
