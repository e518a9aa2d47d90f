"""Defects of brokers: of their logs, partitions and groups."""

from __future__ import annotations

from typing import Any

from kraftd.broker_node.partitions.produces import Produces
from kraftd.groups import replay as group_replay
from kraftd.groups.classic import membership
from kraftd.groups.state import ShardState
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.flushing import FlushJob
from kraftd.log.data.reading import SegmentRead
from kraftd.partition.partition import Partition
from kraftd.simulation.schedule import MS, SECOND
from tests.simulation.mutants.planted import Planted


def skip_the_flush_of_a_partition(patch: Any) -> None:
    """P1: a flush of a log does nothing, and its records count as durable."""
    patch.setattr(FlushJob, "run", lambda self: None)


def forget_producers_at_a_start(patch: Any) -> None:
    """P2: a broker that starts knows no producer, and takes a batch again that is sent again."""
    patch.setattr(ReplayedProducers, "load", lambda self, entries, offset: None)
    patch.setattr(ReplayedProducers, "replay", lambda self, batch: None)


def leave_an_offset_out(patch: Any) -> None:
    """P3: some batches begin one offset too late."""
    appended = Partition.appended

    def gap(self: Partition, end_offset: int, now_ms: int) -> Any:
        effects = appended(self, end_offset, now_ms)
        if end_offset % 5 == 4:
            self.next_offset += 1
        return effects

    patch.setattr(Partition, "appended", gap)


def serve_what_was_damaged(patch: Any) -> None:
    """P4: what is read from a segment is not checked."""
    patch.setattr(SegmentRead, "_check", lambda self, view, position, offset: len(view))


def keep_the_first_commit(patch: Any) -> None:
    """G2: a second commit of a partition is acknowledged, and the first one stays."""
    put = group_replay.put_offset

    def first_only(state: ShardState, group_id: str, place: Any, committed: Any, producer_id: int) -> None:
        if committed is None or place not in state.offsets.of_group(group_id):
            put(state, group_id, place, committed, producer_id)

    patch.setattr(group_replay, "put_offset", first_only)


def give_everything_to_every_member(patch: Any) -> None:
    """G1: each member gets all that the leader has assigned."""
    end_sync = membership.end_sync

    def all_to_all(state: Any, group: Any, generation: int, assignment: dict[str, bytes], *error: Any) -> Any:
        everything = b"".join(assignment.values())
        return end_sync(state, group, generation, dict.fromkeys(assignment, everything), *error)

    patch.setattr(membership, "end_sync", all_to_all)


def answer_no_produce(patch: Any) -> None:
    """L7: records are written, and no producer gets an answer."""
    patch.setattr(Produces, "written", lambda self, *_: None)


WORLD: dict[str, Any] = {"controllers": True, "broker_count": 2, "voter_count": 3, "safety_us": 20 * SECOND}
DEATHS: dict[str, Any] = {"fault_gap_us": 800 * MS, "produce_gap_us": 20 * MS}

ALL: dict[Any, Planted] = {
    skip_the_flush_of_a_partition: Planted("P1", "P2", "P4", faults=("power loss",), **WORLD, **DEATHS),
    forget_producers_at_a_start: Planted("P2", faults=("kill",), reader_loss=0.5, **WORLD, **DEATHS),
    leave_an_offset_out: Planted("P3", **WORLD),
    serve_what_was_damaged: Planted("P4", faults=("damage data segment", "kill"), **WORLD, **DEATHS),
    give_everything_to_every_member: Planted("G1", **WORLD),
    keep_the_first_commit: Planted("G2", faults=("kill",), **WORLD, **DEATHS),
    answer_no_produce: Planted("L7", **WORLD),
}
