"""Which replica a consumer reads from (KIP-392): Kafka's RackAwareReplicaSelector, by the consumer's rack."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.partition.partition import LEADER, Partition
from kraftd.partition.replicas import FollowerProgress

THE_LEADER = -1


def preferred_replica(
    partition: Partition, fetch_offset: int, rack: str, rack_of: Callable[[int], str | None]
) -> int:
    """The follower that a consumer of a rack is sent to, or THE_LEADER.

    It is in the ISR and has the offset. `rack_of` gives None for a broker without a rack, or one that is not
    alive. Of several in the rack, the one that has most is preferred, then the one that last had everything.
    """
    if partition.role is not LEADER or not rack or rack_of(partition.local_id) == rack:
        return THE_LEADER
    able = [
        one
        for one in partition.followers.values()
        if one.broker_id in partition.isr.committed
        and one.log_start_offset <= fetch_offset <= one.log_end_offset
        and rack_of(one.broker_id) == rack
    ]
    return max(able, key=_order).broker_id if able else THE_LEADER


def _order(follower: FollowerProgress) -> tuple[int, int, int]:
    return follower.log_end_offset, follower.caught_up_ms, follower.broker_id
