"""Controllers on separate hosts: hosts are lost, packets are lost one way and both, connections are reset."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.namespaces import HostedQuorum, Hosts, NotPermitted
from tests.faults.quorum import VOTERS, surviving


@pytest.fixture(scope="module", params=[False, True], ids=["dynamic", "static"])
def hosted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HostedQuorum]:
    try:
        hosts = Hosts(VOTERS)
    except NotPermitted as error:
        pytest.skip(f"not run: {error}")
    try:
        with HostedQuorum(tmp_path_factory.mktemp("hosts"), hosts, static=request.param) as quorum:
            quorum.start()
            yield quorum
    finally:
        hosts.close()


def test_a_leaders_host_is_lost_and_comes_back(hosted: HostedQuorum) -> None:
    with surviving(hosted, "lost-host") as writer:
        leader = hosted.wait_for_leader()
        hosted.hosts.pull(leader)
        hosted.controllers[leader].frozen = True  # clients cannot reach it
        hosted.wait_until_led_by_one_of(*hosted.others(leader))
        writer.wait_for_more()


@pytest.mark.parametrize("ways", ["out", "in", "both"])
def test_a_leader_whose_packets_are_lost_is_replaced(hosted: HostedQuorum, ways: str) -> None:
    with surviving(hosted, f"packets-{ways}") as writer:
        leader = hosted.wait_for_leader()
        others = hosted.others(leader)
        if ways != "in":
            hosted.hosts.cut(*[(leader, other) for other in others])
        if ways != "out":
            hosted.hosts.cut(*[(other, leader) for other in others])
        hosted.wait_until_led_by_one_of(*others)
        writer.wait_for_more()


def test_a_bridge_keeps_the_quorum_working(hosted: HostedQuorum) -> None:
    """The leader and one follower cannot reach each other; the other follower reaches both."""
    with surviving(hosted, "bridged") as writer:
        leader = hosted.wait_for_leader()
        follower = hosted.others(leader)[0]
        hosted.hosts.cut((leader, follower), (follower, leader))
        writer.wait_for_more(100)


def test_connections_that_the_system_resets_are_reopened(hosted: HostedQuorum) -> None:
    with surviving(hosted, "reset") as writer:
        for node_id in VOTERS:
            assert hosted.hosts.reset(node_id) > 0
            writer.wait_for_more()
