"""Asks the quorum's leader how far its log is, while a call waits: this replica may lag behind it."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.answers.effects import Answered, SendToNode
from kraftd.answers.forwarding import PassingOn, Progress
from kraftd.answers.view import ClusterView
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftd.messages.describe_quorum_request import PartitionData as RequestedPartition
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC

DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [RequestedPartition(METADATA_PARTITION)])])


class LeaderLog:
    """The questions of one client node."""

    def __init__(self, view: ClusterView, outbox: Outbox, passing_on: PassingOn) -> None:
        self._view = view
        self._outbox = outbox
        self._passing_on = passing_on

    def ask(
        self, call: Call, now_ms: int, then: Callable[[PartitionData | None], None], timeout_ms: int
    ) -> None:
        """Pass the leader's description of the quorum to `then`; None if there is none within the timeout."""
        view = self._view

        def send(request_id: int) -> Progress:
            destination = view.controller_destination()
            if destination is None or view.leader_id == view.node_id:
                then(None)
                return Progress.SETTLED
            self._outbox.emit(SendToNode(request_id, destination, DESCRIBE))
            return Progress.SENT

        def on_answer(answered: Answered) -> bool:
            then(described(answered.message))
            return True

        self._passing_on.begin(
            call, now_ms, send, on_answer, give_up=lambda: then(None), timeout_ms=timeout_ms
        )


def described(response: DescribeQuorumResponse) -> PartitionData | None:
    """The metadata partition as the leader describes it; None if the answer is an error."""
    if response.error_code or not response.topics or not response.topics[0].partitions:
        return None
    partition = response.topics[0].partitions[0]
    return None if partition.error_code else partition


def leaders_log_end(partition: PartitionData) -> int | None:
    """Where the leader's log ends, if it reports that. Others may have committed what it still syncs."""
    ends = [one.log_end_offset for one in partition.current_voters if one.replica_id == partition.leader_id]
    return max(ends[0], partition.high_watermark) if ends and ends[0] >= 0 else None
