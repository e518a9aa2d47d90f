"""Leaders that a node finds and loses are events of its audit stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.runtime.peers.peer_watch import PeerWatch, poll_ms


def test_leaders_that_are_found_and_lost_are_events_but_not_this_node() -> None:
    told: list[Any] = []
    core: Any = SimpleNamespace(
        leader_id=None, leader_answers=False, epoch=4, voters=SimpleNamespace(ids=[]), is_leader=False
    )
    core.new_voter, core.voters_without_log = None, frozenset()
    core.leader_sources = list
    clock: Any = SimpleNamespace(now_ms=lambda: 0)
    loop: Any = SimpleNamespace(call_later=lambda *_: None)
    watch = PeerWatch(PeerTroubles(1, "c"), core, clock, None, loop, told.append, told.append)
    for leader_id, answers, epoch in (
        *((2, True, 5), (2, True, 5), (2, False, 5), (1, True, 6), (1, False, 6), (3, True, 7), (2, True, 8)),
    ):
        core.leader_id, core.leader_answers, core.epoch = leader_id, answers, epoch
        watch._report()
    assert [(one.event, one.fields) for one in told] == [
        ("leader found", {"leader": 2, "epoch": 5}),
        ("leader lost", {"leader": 2, "epoch": 5}),
        ("leader found", {"leader": 3, "epoch": 7}),
        ("leader lost", {"leader": 3, "epoch": 8}),  # succeeded between two checks
        ("leader found", {"leader": 2, "epoch": 8}),
    ]


def test_the_only_voter_looks_for_troubles_of_others_less_often() -> None:
    def core_of(is_leader: bool, voters: int) -> Any:
        return SimpleNamespace(is_leader=is_leader, voters=SimpleNamespace(ids=list(range(voters))))

    assert [poll_ms(core_of(leads, voters)) for leads, voters in ((True, 1), (True, 3), (False, 1))] == [
        5_000,
        1_000,
        1_000,
    ]
