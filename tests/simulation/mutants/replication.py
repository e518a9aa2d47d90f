"""Defects of partitions with several replicas."""

from __future__ import annotations

from typing import Any

from kraftd.partition import replication
from kraftd.partition.isr import InSyncReplicas
from kraftd.partition.partition import Partition
from kraftd.simulation.schedule import MS, SECOND
from tests.simulation.mutants.planted import Planted


def let_a_lagging_follower_join(patch: Any) -> None:
    """P5: a leader proposes a follower as soon as that fetches, and does not wait for it meanwhile."""
    propose = InSyncReplicas.propose

    def propose_without_waiting(self: InSyncReplicas, *arguments: Any) -> Any:
        proposal = propose(self, *arguments)
        self.maximal = self.committed
        return proposal

    def is_due(partition: Partition, follower: Any) -> bool:
        isr = partition.isr
        is_outside = isr.pending is None and follower.broker_id not in isr.committed
        return is_outside and partition.may_join_isr(follower)

    patch.setattr(replication, "_is_due_to_join", is_due)
    patch.setattr(InSyncReplicas, "propose", propose_without_waiting)


def let_the_high_watermark_follow_down(patch: Any) -> None:
    """P6: a leader that learns of a change of its ISR forgets a record of its high watermark."""
    lead = Partition._lead

    def lead_with_less(self: Partition, registration: Any, now_ms: int) -> Any:
        is_known = self.is_leader and registration.leader_epoch == self.leader_epoch
        effects = lead(self, registration, now_ms)
        return effects + self.move_high_watermark(self.high_watermark - 1) if is_known else effects

    patch.setattr(Partition, "_lead", lead_with_less)


def count_the_leader_alone(patch: Any) -> None:
    """P7: records are committed as soon as the leader has written them."""
    patch.setattr(
        Partition,
        "advance_high_watermark",
        lambda self, now_ms: self.move_high_watermark(self.log_end_offset) if self.is_leader else [],
    )


WORLD: dict[str, Any] = {
    "controllers": True,
    "broker_count": 3,
    "voter_count": 3,
    "replica_count": 3,
    "safety_us": 15 * SECOND,
    "fault_gap_us": 800 * MS,
    "produce_gap_us": 20 * MS,
    "act_gap_us": 5 * SECOND,  # of the workload, whose own brokers would show some of this by C3
}

ALL: dict[Any, Planted] = {
    let_a_lagging_follower_join: Planted("P5", faults=("kill", "cut link"), **WORLD),
    let_the_high_watermark_follow_down: Planted("P6", faults=("kill", "cut link"), **WORLD),
    count_the_leader_alone: Planted("P7", "P5", faults=("kill",), **WORLD),
}
