"""Voters whose directories are new: the first election, and volumes that were lost."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.raft.transitions import State
from tests.raft.world import Disk, World

VOTERS = (1, 2, 3)


def new_world(*, static: bool = False, seed: int = 1, **options: Any) -> World:
    world = World(seed=seed)
    world.add_voters(VOTERS, static=static, **options)
    for node in world.nodes.values():
        node.disk.is_new = True
    return world


def grown_world(*, static: bool = False) -> World:
    """A quorum with a log, all of whose voters are down."""
    world = new_world(static=static)
    for node_id in VOTERS:
        world.start(node_id)
    assert world.run(10_000, until=lambda: world.leader() is not None)
    world.run(2_000)
    for node_id in VOTERS:
        world.crash(node_id)
    world.run(1_000)
    return world


def wipe(world: World, node_id: int) -> None:
    """Replace a volume by a new one, formatted under the old identity."""
    node = world.nodes[node_id]
    first = {at: data for at, data in node.disk.snapshots.items() if at.offset == 0}
    node.disk = Disk(node.disk.static_voters, next(iter(first.values()), b""))
    node.disk.is_new = True
    world.invariants = None  # what the volume had promised is forgotten


def new_ids(world: World) -> list[int]:
    return [node.id for node in world.nodes.values() if node.core is not None and node.core.new_voter]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_first_election_needs_all_voters_and_no_operator(static: bool, seed: int) -> None:
    world = new_world(static=static, seed=seed)
    world.start(1)
    world.start(2)
    assert not world.run(3_000, until=lambda: world.leader() is not None)
    assert [world.nodes[node_id].disk.election for node_id in (1, 2)] == [None, None]
    assert world.core(1).new_voter is not None
    assert world.core(1).new_voter.awaited == [3]
    world.start(3)
    assert world.run(1_000, until=lambda: world.leader() is not None)
    world.run(2_000)
    assert new_ids(world) == []
    assert {world.core(node_id).epoch for node_id in VOTERS} == {world.core(1).epoch}


def test_a_first_election_does_not_wait_for_an_excused_voter() -> None:
    world = new_world(first_election_without=frozenset({3}))
    world.start(1)
    world.start(2)
    assert world.run(5_000, until=lambda: world.leader() is not None)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (1, 3, 2)])
def test_two_voters_that_lost_their_volumes_elect_no_leader(static: bool, order: tuple[int, ...]) -> None:
    world = grown_world(static=static)
    end = world.nodes[3].disk.end
    wipe(world, 1)
    wipe(world, 2)
    for node_id in order:
        world.start(node_id)
        assert not world.run(4_000, until=lambda: world.leader() is not None)
    assert new_ids(world) == [1, 2]
    assert world.core(3).voters_without_log == {1, 2}, "the third can say so"
    assert 3 not in world.core(1).voters_without_log
    assert world.nodes[3].disk.end == end > 0
    assert [world.nodes[node_id].disk.end for node_id in (1, 2)] == [0, 0]


@pytest.mark.parametrize("static", [False, True])
def test_a_voter_that_lost_its_volume_votes_once_it_has_caught_up(static: bool) -> None:
    world = grown_world(static=static)
    wipe(world, 1)
    world.start(2)
    world.start(1)
    assert not world.run(4_000, until=lambda: world.leader() is not None), "it does not vote"
    world.start(3)
    assert world.run(10_000, until=lambda: world.leader() is not None)
    assert world.run(5_000, until=lambda: new_ids(world) == [])
    leader = world.leader()
    assert leader is not None and leader.id in (2, 3)
    assert world.nodes[1].disk.end == leader.disk.end
    assert not any(world.core(node_id).voters_without_log for node_id in VOTERS)
    world.crash(leader.id)
    assert world.run(10_000, until=lambda: world.leader() is not None), "now it votes"


def test_a_crash_before_it_has_caught_up_does_not_make_it_vote() -> None:
    world = grown_world()
    wipe(world, 1)
    world.start(2)
    world.start(3)
    assert world.run(10_000, until=lambda: world.leader() is not None)
    world.held.add(1)  # its disk is slow: nothing that it fetches is synced
    world.start(1)
    assert world.run(5_000, until=lambda: world.core(1).state is State.FOLLOWER)
    assert world.nodes[1].disk.is_new and world.nodes[1].disk.election is not None
    world.crash(1)
    world.crash(3)
    world.start(1)
    world.run(200)
    assert new_ids(world) == [1]
    assert not world.run(4_000, until=lambda: world.leader() is not None and world.leader().id == 1)


def test_one_that_is_to_join_anew_fetches_nothing_under_its_old_directory_id() -> None:
    world = grown_world()
    wipe(world, 1)
    world.nodes[1].config = type(world.nodes[1].config)(
        **{
            **{
                name: getattr(world.nodes[1].config, name) for name in world.nodes[1].config.__struct_fields__
            },
            "rejoins": True,
        }
    )
    for node_id in VOTERS:
        world.start(node_id)
    assert world.run(10_000, until=lambda: world.leader() is not None)
    world.run(5_000)
    assert world.nodes[1].disk.end == 0
    assert new_ids(world) == [1]
