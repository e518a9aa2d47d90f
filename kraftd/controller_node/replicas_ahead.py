"""Replicas that have applied records which this quorum has lost: logged at once, then once a minute with a
count.

A fetch carries the high watermark that the replica knows (v18, KIP-1166). If the logs diverge below it, the
replica has applied records that the leader does not have. The same holds if the answer is a snapshot that
ends below it. That happens only after a lost majority or a restored backup. Heartbeats of brokers, also of
those before 4.1, carry the offset that the broker has applied: that cannot lie beyond the leader's log
either. `lines` names the replicas that have not followed this log since: such a replica usually ends, and
stays down until it is repaired. /readyz and DescribeQuorum report them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.requests.refusal_log import node_id_of
from kraftd.requests.repeats import MAX_PEERS, Repeats

FIRST_FETCH_VERSION_WITH_HIGH_WATERMARK = 18
PARTS = "a replica's log parts from this one: it must drop records"
UNKNOWN = (1 << 63) - 1  # the high watermark in a fetch that does not carry one
REMEDY = (
    "it has applied metadata that this quorum has lost, and Apache Kafka's broker ends there with a fatal "
    "error: delete its __cluster_metadata-0 directory, which holds no topic's records, and start it again"
)
VOTER_REMEDY = (
    "it is a voter and holds committed records that this quorum has lost: keep its directory. Either stop "
    "the other voters and recover the quorum from it (kraftd quorum recover), or drop its records for good "
    "(kraftd quorum discard)"
)


class ReplicasAhead:
    """Notes replicas whose high watermark is above the offset at which the logs diverge. `is_voter` tells the
    ids of voters.
    """

    def __init__(self, outbox: Outbox, is_voter: Callable[[int], bool]) -> None:
        self._outbox = outbox
        self._is_voter = is_voter
        self._repeats = Repeats()
        self._ahead: dict[int | None, str] = {}

    def note(self, call: Call, parted_at: int) -> None:
        """Note a Fetch answered with a diverging epoch or a snapshot: the logs differ from offset `parted_at`
        on, or earlier.
        """
        message: Any = call.message
        partition = message.topics[0].partitions[0]
        knows = call.version >= FIRST_FETCH_VERSION_WITH_HIGH_WATERMARK
        if knows and parted_at < partition.high_watermark < UNKNOWN:
            self._warn(call, parted_at, partition.high_watermark, partition.fetch_offset)
        elif parted_at < partition.fetch_offset:
            self._report(call, parted_at, partition.fetch_offset, partition.last_fetched_epoch)

    def _report(self, call: Call, parted_at: int, log_end: int, epoch: int) -> None:
        """Log that a replica must drop records. After a failover, records without a commit are dropped so."""
        node_id = node_id_of(call)
        count = self._repeats.due((node_id, call.host, PARTS), call.arrived_ns)
        if count:
            self._outbox.log(
                "info",
                PARTS,
                from_node=node_id,
                host=call.host,
                same_before=parted_at,
                its_log_end=log_end,
                its_epoch=epoch,
                seen=count,
            )

    def note_heartbeat(self, call: Call, log_end: int) -> None:
        """Note a BrokerHeartbeat of a broker that has applied records behind the leader's log end."""
        self._warn(call, log_end, call.message.current_metadata_offset + 1, None)

    def _warn(self, call: Call, parted_at: int, applied_end: int, log_end: int | None) -> None:
        node_id = node_id_of(call)
        remedy = VOTER_REMEDY if node_id is not None and self._is_voter(node_id) else REMEDY
        self._name(
            node_id,
            f"node {node_id} at {call.host} is ahead of this quorum: their logs part at offset {parted_at}, "
            f"and it has applied the records before {applied_end}; {remedy}",
        )
        count = self._repeats.due((node_id, call.host), call.arrived_ns)
        if not count:
            return
        fields = {
            "from_node": node_id,
            "host": call.host,
            "client_id": call.client_id,
            "principal": str(call.principal),
            "same_before": parted_at,
            "its_high_watermark": applied_end,
            "its_log_end": log_end,
            "remedy": remedy,
            "seen": count,
        }
        self._outbox.log("warning", "a replica is ahead of this quorum", **fields)
        self._outbox.emit(AuditLine("replica ahead", -1, fields))

    def follows(self, call: Call) -> None:
        """Note a Fetch answered with the records after the replica's log: it is no longer ahead."""
        if self._ahead:
            self._ahead.pop(node_id_of(call), None)

    def lines(self) -> list[str]:
        """One line for each replica that is ahead: the fault, and what to do."""
        return list(self._ahead.values())

    def _name(self, node_id: int | None, line: str) -> None:
        self._ahead.pop(node_id, None)
        if len(self._ahead) >= MAX_PEERS:
            del self._ahead[next(iter(self._ahead))]
        self._ahead[node_id] = line

    def __repr__(self) -> str:
        return f"<ReplicasAhead {len(self._ahead)}>"
