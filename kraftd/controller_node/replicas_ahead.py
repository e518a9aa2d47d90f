"""Replicas that have applied what this quorum has lost: named at once, then once a minute with a count.

A fetch tells the high watermark that the replica knows (v18, KIP-1166). Where the logs part below that, the
replica has applied records that the leader does not have. Without a lost majority or a restored backup that
cannot happen.
"""

from __future__ import annotations

from typing import Any

from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.requests.refusal_log import node_id_of
from kraftd.requests.repeats import Repeats

TOLD_FROM_VERSION = 18
UNKNOWN = (1 << 63) - 1  # what a fetch has for a high watermark that it leaves out
REMEDY = (
    "it has applied metadata that this quorum has lost, and Apache Kafka's broker ends there with a fatal "
    "error: delete its __cluster_metadata-0 directory, which holds no topic's records, and start it again"
)


class ReplicasAhead:
    """Notes replicas whose high watermark is beyond where the logs part."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._repeats = Repeats()

    def note(self, call: Call, parted_at: int) -> None:
        """A Fetch was answered with a diverging epoch: up to the offset `parted_at` the logs are the same."""
        message: Any = call.message
        asked = message.topics[0].partitions[0]
        if call.version < TOLD_FROM_VERSION or not parted_at < asked.high_watermark < UNKNOWN:
            return
        node_id = node_id_of(call)
        count = self._repeats.due((node_id, call.host), call.arrived_ns)
        if not count:
            return
        fields = {
            "from_node": node_id,
            "host": call.host,
            "client_id": call.client_id,
            "principal": str(call.principal),
            "same_before": parted_at,
            "its_high_watermark": asked.high_watermark,
            "its_log_end": asked.fetch_offset,
            "remedy": REMEDY,
            "seen": count,
        }
        self._outbox.say("warning", "a replica is ahead of this quorum", **fields)
        self._outbox.emit(AuditLine("replica ahead", -1, fields))

    def __repr__(self) -> str:
        return f"<ReplicasAhead {self._repeats!r}>"
