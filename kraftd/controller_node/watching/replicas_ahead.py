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

from collections.abc import Callable, Container
from enum import Enum
from typing import Any

from kraftd.metadata.image import Image
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.requests.refusal_log import node_id_of
from kraftd.requests.repeats import MAX_PEERS, Repeats

FIRST_FETCH_VERSION_WITH_HIGH_WATERMARK = 18
PARTS = "a replica's log parts from this one: it must drop records"
UNKNOWN = (1 << 63) - 1  # the high watermark in a fetch that does not carry one
BROKER_REMEDY = (
    "it has applied metadata that this quorum has lost, and Apache Kafka's broker ends there with a fatal "
    "error: delete its __cluster_metadata-0 directory, which holds no topic's records, and start it again"
)
CONTROLLER_REMEDY = (
    "it is a controller and holds committed records that this quorum has lost: keep its directory. Either "
    "stop the other controllers and recover the quorum from it (kraftd quorum recover), or drop its records "
    "for good (kraftd quorum discard)"
)
UNKNOWN_REMEDY = (
    "it holds committed records that this quorum has lost, and is not registered: keep its directory. If it "
    "is a controller, either stop the others and recover the quorum from it (kraftd quorum recover), or drop "
    "its records for good (kraftd quorum discard). If it is a broker, delete its __cluster_metadata-0 "
    "directory, which holds no topic's records, and start it again"
)


class Role(Enum):
    """What the node of an id is, as far as the leader knows. Its log counts if it is a controller as well."""

    CONTROLLER = CONTROLLER_REMEDY
    BROKER = BROKER_REMEDY
    UNKNOWN = UNKNOWN_REMEDY


def role_of(node_id: int | None, voters: Container[int], image: Image) -> Role:
    """The role of a node. A voter that a recovery removed is a controller by its registration."""
    if node_id is None:
        return Role.UNKNOWN
    if node_id in voters or node_id in image.controllers:
        return Role.CONTROLLER
    return Role.BROKER if node_id in image.brokers else Role.UNKNOWN


class ReplicasAhead:
    """Notes replicas whose high watermark is above the offset at which the logs diverge. `role_of` gives the
    role of a node's id.
    """

    def __init__(self, outbox: Outbox, role_of: Callable[[int | None], Role]) -> None:
        self._outbox = outbox
        self._role_of = role_of
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
        role = self._role_of(node_id_of(call))
        known = Role.BROKER if role is Role.UNKNOWN else role  # only brokers send heartbeats
        self._warn(call, log_end, call.message.current_metadata_offset + 1, None, known)

    def _warn(
        self, call: Call, parted_at: int, applied_end: int, log_end: int | None, role: Role | None = None
    ) -> None:
        node_id = node_id_of(call)
        remedy = (role or self._role_of(node_id)).value
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
