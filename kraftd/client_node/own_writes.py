"""Answers a forwarded write once this node's image has it: the writer's next request may read it here.

The active controller answers once a write is committed, and this node's fetch brings the records about then,
often a little later. So this node asks the leader for its high watermark, which is past the write, and holds
the answer until its image has reached that. A write is answered in any case: at once if the leader does not
say, else when its time is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.client_node.effects import Answered, SendToNode
from kraftd.client_node.held_answers import Act
from kraftd.client_node.passing_on import Progress
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.requests.call import Call
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode

DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(METADATA_PARTITION)])])


def answer_once_applied(node: ClientNode, call: Call, answer: Act) -> None:
    """Answer a forwarded write once this node's image has it, or when the request's time is over."""
    view = node.view
    timeout_ms = node.settings.request_timeout_ms
    until_ms = node.now_ms + max(0, min(timeout_ms, getattr(call.message, "timeout_ms", timeout_ms)))

    def send(request_id: int) -> Progress:
        destination = view.controller_destination()
        if view.is_active or destination is None or view.leader_id == view.node_id:
            answer()
            return Progress.SETTLED
        node.outbox.emit(SendToNode(request_id, destination, DESCRIBE))
        return Progress.SENT

    def on_answer(answered: Answered) -> bool:
        end_offset = high_watermark_of(answered.message)
        if end_offset <= view.applied_end_offset:
            answer()
        else:
            node.held.hold(call, answer, end_offset, until_ms)
        return True

    node.passing_on.begin(call, node.now_ms, send, on_answer, give_up=answer)


def high_watermark_of(response: DescribeQuorumResponse) -> int:
    """The leader's high watermark; -1 if the answer has none."""
    if response.error_code or not response.topics or not response.topics[0].partitions:
        return -1
    partition = response.topics[0].partitions[0]
    return -1 if partition.error_code else partition.high_watermark
