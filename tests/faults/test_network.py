"""Links between controllers are cut one way and both ways, reset and slowed while topics are created."""

from __future__ import annotations

import itertools

import pytest

from kraftd.wire.error_code import ErrorCode
from testkit.process import wait_until
from tests.faults.quorum import VOTERS, FaultyQuorum, create, surviving

ALL_LINKS = list(itertools.permutations(VOTERS, 2))


def assert_commits_nothing(quorum: FaultyQuorum, leader: int, name: str) -> None:
    """Check that an isolated leader acknowledges nothing and resigns soon."""
    with quorum.connect(leader, timeout_s=20) as client:
        assert create(client, name, timeout_ms=10_000) == ErrorCode.NOT_CONTROLLER
    wait_until(lambda: quorum.described_by(leader) is None, f"{leader} resigns")


def test_a_leader_cut_off_both_ways_commits_nothing_and_resigns(three: FaultyQuorum) -> None:
    with surviving(three, "cut-off") as writer:
        leader = three.wait_for_leader()
        others = three.others(leader)
        three.proxy.part(leader, *others)
        assert_commits_nothing(three, leader, "lost-in-the-cut")
        three.wait_until_led_by_one_of(*others)
        writer.wait_for_more()
    assert "lost-in-the-cut" not in three.check().topic_names()


def test_a_leader_whose_messages_do_not_arrive_is_replaced(three: FaultyQuorum) -> None:
    with surviving(three, "mute") as writer:
        leader = three.wait_for_leader()
        others = three.others(leader)
        three.proxy.cut(*[(leader, other) for other in others])
        three.wait_until_led_by_one_of(*others)
        writer.wait_for_more()


def test_a_leader_that_gets_no_messages_resigns(three: FaultyQuorum) -> None:
    """The answer to a parked fetch may still carry a record: it may commit later, unacknowledged."""
    with surviving(three, "deaf") as writer:
        leader = three.wait_for_leader()
        others = three.others(leader)
        three.proxy.cut(*[(other, leader) for other in others])
        assert_commits_nothing(three, leader, "unheard")
        three.wait_until_led_by_one_of(*others)
        writer.wait_for_more()


def test_a_follower_cut_off_changes_nothing(three: FaultyQuorum) -> None:
    """KIP-996: its pre-votes do not arrive, and after its return they are refused."""
    with surviving(three, "cut-follower") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        follower, other = three.others(leader)
        three.proxy.part(follower, leader, other)
        writer.wait_for_more(300)
        three.proxy.heal()
        three.wait_for_voters(*VOTERS)
        assert (three.wait_for_leader(), three.epoch()) == (leader, epoch)


def test_one_voter_that_reaches_both_others_keeps_the_quorum_working(three: FaultyQuorum) -> None:
    """Whichever voter leads, one voter reaches both others, which do not reach each other."""
    for bridge in VOTERS:
        with surviving(three, f"bridge-{bridge}") as writer:
            three.proxy.part(*three.others(bridge))
            writer.wait_for_more(100)


def test_a_broken_link_between_followers_disturbs_no_leader(three: FaultyQuorum) -> None:
    with surviving(three, "lone-link") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        three.proxy.part(*three.others(leader))
        writer.wait_for_more(200)
        assert (three.wait_for_leader(), three.epoch()) == (leader, epoch)


def test_links_that_are_reset_repeatedly_lose_nothing(three: FaultyQuorum) -> None:
    with surviving(three, "reset") as writer:
        for _ in range(10):
            assert three.proxy.reset(*ALL_LINKS) > 0
            writer.wait_for_more(5)


@pytest.mark.parametrize("delay_s, bytes_per_s", [(0.05, 0), (0, 20_000)], ids=["late", "narrow"])
def test_slow_links_cause_no_change_of_leader(
    three: FaultyQuorum, delay_s: float, bytes_per_s: float
) -> None:
    with surviving(three, f"slow-{int(bytes_per_s)}") as writer:
        leader, epoch = three.wait_for_leader(), three.epoch()
        three.proxy.slow(*ALL_LINKS, delay_s=delay_s, bytes_per_s=bytes_per_s)
        writer.wait_for_more(20)
        assert (three.wait_for_leader(), three.epoch()) == (leader, epoch)


def test_a_quorum_split_in_three_works_again_after_healing(three: FaultyQuorum) -> None:
    with surviving(three, "split") as writer:
        three.proxy.cut(*ALL_LINKS)
        for node_id in VOTERS:
            wait_until(
                lambda node_id=node_id: three.described_by(node_id) is None, f"{node_id} does not lead"
            )
        before = len(writer.acknowledged)
        three.proxy.heal()
        three.wait_for_leader()
        writer.wait_for_more()
        assert len(writer.acknowledged) > before
