"""Answers that may be very long: counted, encoded and sent in slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.ground.pace import Slices

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.call import Call
    from kraftd.wire.message import Message

ROW_US = 1  # microseconds, for the pace: a row of an answer


def answer_in_slices(node: AnsweringNode, call: Call, response: Message) -> Slices[None]:
    """Answer a call now; consumes the response."""
    yield from node.boundary.answer_in_slices(call, response)
