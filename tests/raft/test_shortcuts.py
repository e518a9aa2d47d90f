"""Shortcuts in the core and its log have exactly the results of the full computation."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.raft import answers, fetch_answers
from kraftd.raft.core import RaftCore
from kraftd.raft.events import AppendRequested, LogStartMoved, SnapshotTaken
from kraftd.raft.log_view import Fit, LogView
from kraftd.simulation.schedule import SECOND
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.raft.world import World
from tests.simulation.mutants.planted import Planted

CALM = Planted(safety_us=3 * SECOND, controllers=False)  # a world without a defect


def trace(seed: int, patch: pytest.MonkeyPatch) -> list[Any]:
    """The effects of all replicas in one simulated world, with their times."""
    done: list[Any] = []
    step = RaftCore.step

    def traced(core: RaftCore, event: Any, now_ms: int) -> list[Any]:
        effects = step(core, event, now_ms)
        if effects:
            done.append((core.epoch, now_ms, [repr(effect) for effect in effects]))
        return effects

    with patch.context() as patched:
        patched.setattr(RaftCore, "step", traced)
        assert CALM.run(seed) is None
    return done


@pytest.mark.parametrize("seed", range(10))
def test_leader_that_skips_work_that_is_not_due_does_the_same_as_without(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = trace(seed, monkeypatch)
    monkeypatch.setattr(RaftCore, "_is_calm", lambda core: False)
    assert trace(seed, monkeypatch) == quick


def test_answer_without_news_is_shared_until_it_changes() -> None:
    world = World()
    world.add_voters([1])
    world.start(1)
    world.run(10)
    replica = world.core(1)._replica
    leader: Any = replica.role

    def cached_answer(version: int, listener: str) -> Any:
        answer = fetch_answers.nothing(replica, leader, version, listener)
        fresh, _ = answers.fetch(replica, version, listener, ErrorCode.NONE, leader.high_watermark)
        assert answer == fresh
        assert fetch_answers.nothing(replica, leader, version, listener) is answer
        return answer

    callers = [(13, "CONTROLLER"), (17, "CONTROLLER"), (17, "OTHER"), (18, "CONTROLLER")]
    first = [cached_answer(*caller) for caller in callers]
    world.step(1, AppendRequested(1, [b"record"], world.core(1).epoch))
    world.run(10)
    moved = [cached_answer(*caller) for caller in callers]
    assert all(now != then for now, then in zip(moved, first, strict=True))
    end = OffsetAndEpoch(world.core(1).high_watermark, world.core(1).epoch)
    world.step(1, SnapshotTaken(end, 100))
    world.step(1, LogStartMoved(end.offset))
    assert all(now != then for now, then in zip([cached_answer(*one) for one in callers], moved, strict=True))


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_position_in_the_last_epoch_is_located_as_by_a_full_search(with_snapshot: bool) -> None:
    snapshots = {OffsetAndEpoch(4, 2): 10} if with_snapshot else {}
    log = LogView(
        4 if with_snapshot else 0, 12, [(2, 4), (3, 8)] if with_snapshot else [(1, 0), (3, 8)], snapshots
    )
    for offset in range(14):
        for epoch in range(5):
            end = log.end_offset_for_epoch(epoch)
            fit = log.locate(offset, epoch).fit
            if fit is not Fit.SNAPSHOT and offset:
                continues = end.epoch == epoch and end.offset >= offset
                assert fit is (Fit.VALID if continues else Fit.DIVERGING), (offset, epoch)
