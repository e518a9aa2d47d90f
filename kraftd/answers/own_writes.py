"""Answers a forwarded write once this node's image has it: the writer's next request may read it here.

The active controller answers once a write is committed, and this node's fetch brings the records about then,
often a little later. So this node asks the leader for its high watermark, which is past the write, and holds
the answer until its image has reached that. A write is answered in any case: at once if the leader does not
say, else when its time is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.held_answers import Act
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.requests.call import Call

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode


def answer_once_applied(node: AnsweringNode, call: Call, answer: Act) -> None:
    """Answer a forwarded write once this node's image has it, or when the request's time is over."""
    timeout_ms = node.settings.request_timeout_ms
    timeout_ms = max(0, min(timeout_ms, getattr(call.message, "timeout_ms", timeout_ms)))
    until_ms = node.now_ms + timeout_ms

    def then(partition: PartitionData | None) -> None:
        if partition is None or partition.high_watermark <= node.view.applied_end_offset:
            answer()
        else:
            node.held.hold(call, answer, partition.high_watermark, until_ms)

    node.leader_log.ask(call, node.now_ms, then, timeout_ms)
