"""Defects planted into the coordinator, each of which a test of this folder must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from kraftd.groups import replay
from kraftd.groups.classic import membership, rebalance
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.join import Joining
from kraftd.groups.classic.states import PREPARING_REBALANCE
from kraftd.groups.deadlines import Deadlines
from kraftd.groups.offsets.committed import Committed
from kraftd.groups.offsets.store import OffsetStore
from kraftd.groups.outcome import Outcome
from kraftd.groups.shard import Shard
from kraftd.groups.timeline import Timeline
from tests.groups import test_classic_groups as classic
from tests.groups import test_offsets as offsets
from tests.groups import test_shards as shards
from tests.groups.machine import GroupMachine

QUICK = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def machine() -> None:
    run_state_machine_as_test(GroupMachine, settings=QUICK)


def nothing(*_: Any, **__: Any) -> Any:
    return None


def same_generation(self: ClassicGroup, now_ms: int) -> None:
    generation = self.generation
    BEGIN(self, now_ms)
    self.generation = generation


def all_to_each(*arguments: Any) -> Any:
    state, group, generation, assignment, error = arguments
    everything = b"".join(assignment.values())
    return END_SYNC(state, group, generation, dict.fromkeys(assignment, everything), error)


def without_assignments(self: ClassicGroup, assignment: Any = None) -> Any:
    return RECORD(self, {})


def keep_the_late(state: Any, group: ClassicGroup) -> Outcome:
    group.pending_join.clear()
    for member in group.members.values():
        member.instance_id = member.instance_id or "static"
    return COMPLETE(state, group)


def commit_always(self: OffsetStore, producer_id: int, is_commit: bool) -> None:
    END_TRANSACTION(self, producer_id, True)


def latest_marker_wins(self: OffsetStore, producer_id: int, is_commit: bool) -> None:
    pending = self.timeline.remove(self.pending, producer_id) or {}
    for (group_id, topic, partition), committed in pending.items():
        self.open_producers.get(group_id, {}).pop((topic, partition), None)
        if is_commit:
            self.put(group_id, (topic, partition), committed)


def committed_is_latest(self: Timeline, mapping: Any, key: Any) -> Any:
    return mapping.get(key)


def answer_at_once(self: Shard, outcome: Outcome, answer: Any = None, *rest: Any) -> None:
    if answer is not None and outcome.response is not None:
        answer(outcome.response)
        outcome.response = None
    SUBMIT(self, outcome, answer, *rest)


def leader_stays(self: ClassicGroup, member_id: str) -> None:
    leader = self.leader_id
    REMOVE(self, member_id)
    self.leader_id = leader


def add_without_counting(self: ClassicGroup, member: Any) -> None:
    ADD(self, member)
    if self.state is PREPARING_REBALANCE and self.joining_count:
        self.joining_count -= 1


BEGIN, RECORD, REMOVE, ADD = (
    ClassicGroup.begin_generation,
    ClassicGroup.record,
    ClassicGroup.remove,
    ClassicGroup.add,
)
END_SYNC, COMPLETE, END_TRANSACTION, SUBMIT = (
    membership.end_sync,
    rebalance.complete,
    OffsetStore.end_transaction,
    Shard.submit,
)

MUTANTS: dict[str, tuple[Any, str, Any, Callable[[], None]]] = {
    "an append that failed is not taken back": (Timeline, "revert", nothing, machine),
    "readers see what is not committed": (
        Timeline,
        "committed_value",
        committed_is_latest,
        offsets.test_readers_see_what_is_committed_and_stable_ones_wait,
    ),
    "answers do not wait for the high watermark": (
        Shard,
        "submit",
        answer_at_once,
        offsets.test_a_commit_that_is_not_committed_in_time_is_answered_so,
    ),
    "a rebalance keeps the generation": (ClassicGroup, "begin_generation", same_generation, machine),
    "each member gets all partitions": (membership, "end_sync", all_to_each, machine),
    "records lack assignments": (ClassicGroup, "record", without_assignments, machine),
    "members that are late stay": (
        rebalance,
        "complete",
        keep_the_late,
        classic.test_a_member_that_does_not_rejoin_in_time_is_removed,
    ),
    "a leader that has left leads": (ClassicGroup, "remove", leader_stays, machine),
    "a member that joins is not counted": (ClassicGroup, "add", add_without_counting, machine),
    "any member id is good": (
        ClassicGroup,
        "check_member",
        nothing,
        classic.test_a_static_member_that_restarts_keeps_its_assignment__kip345,
    ),
    "any commit is good": (
        ClassicGroup,
        "check_commit",
        nothing,
        offsets.test_only_members_of_the_generation_commit,
    ),
    "groups take members without limit": (
        Joining,
        "is_accepted",
        lambda *_: True,
        classic.test_a_full_group_refuses_more_members,
    ),
    "sessions never end": (
        rebalance,
        "expire_heartbeat",
        lambda *_: Outcome(),
        classic.test_a_member_without_heartbeats_is_removed,
    ),
    "aborted offsets count": (OffsetStore, "end_transaction", commit_always, machine),
    "the later marker wins, not the later offset": (
        OffsetStore,
        "end_transaction",
        latest_marker_wins,
        offsets.test_a_later_commit_beats_an_earlier_one_of_a_transaction,
    ),
    "tombstones are passed over": (OffsetStore, "remove", nothing, machine),
    "offsets never expire": (
        Committed,
        "is_expired",
        lambda *_: False,
        offsets.test_an_offset_of_a_simple_consumer_expires_by_its_commit,
    ),
    "offsets expire at once": (
        Committed,
        "is_expired",
        lambda *_: True,
        offsets.test_an_offset_of_a_simple_consumer_expires_by_its_commit,
    ),
    "groups are not loaded": (
        replay,
        "replay_group",
        nothing,
        classic.test_a_loaded_group_goes_on,
    ),
    "deadlines do not move": (
        Deadlines,
        "cancel",
        nothing,
        shards.test_deadlines_come_in_order_and_move,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_defect_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, replacement, killer = MUTANTS[name]
    original = getattr(owner, attribute)
    monkeypatch.setattr(owner, attribute, replacement)
    if original in replay.REPLAYED.values():
        for key, function in list(replay.REPLAYED.items()):
            if function is original:
                monkeypatch.setitem(replay.REPLAYED, key, replacement)
    with pytest.raises((AssertionError, ExceptionGroup, KeyError)):
        killer()
