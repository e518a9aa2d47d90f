"""Controllers that start again in another state: with an old disk, on other ports, all at once."""

from __future__ import annotations

import itertools
import shutil

import pytest

from testkit.node import Node
from testkit.process import free_port
from testkit.quorum import Quorum
from tests.kafka.quorum.writers import writing

pytestmark = pytest.mark.kafka


def a_follower(quorum: Quorum) -> int:
    leader = quorum.wait_for_leader()
    return next(node_id for node_id in quorum.controllers if node_id != leader)


def test_a_voter_that_comes_back_with_an_old_copy_of_its_directory_catches_up(healed: Quorum) -> None:
    node_id = a_follower(healed)
    controller = healed.controllers[node_id]
    controller.stop()
    old = controller.home / "old"
    shutil.copytree(controller.data, old)
    healed.start_controllers(node_id)
    healed.wait_for_voters(100, 101, 102)
    with writing(healed, "old-copy") as writer:
        writer.wait_for_more()
        controller.kill()
        shutil.rmtree(controller.data)
        old.rename(controller.data)
        healed.start_controllers(node_id)
        healed.wait_for_voters(100, 101, 102)
        writer.wait_for_more()


def test_a_leader_that_was_frozen_follows_its_successor(healed: Quorum) -> None:
    with writing(healed, "frozen") as writer:
        writer.wait_for_more()
        epoch, frozen = healed.epoch(), healed.controller
        frozen.freeze()
        assert healed.wait_for_leader(after_epoch=epoch) != frozen.node_id
        writer.wait_for_more()
        frozen.thaw()
        healed.wait_for_voters(100, 101, 102)
        writer.wait_for_more()


def test_a_follower_that_was_frozen_catches_up_and_disturbs_no_leader(healed: Quorum) -> None:
    with writing(healed, "asleep") as writer:
        frozen = healed.controllers[a_follower(healed)]
        epoch = healed.epoch()
        frozen.freeze()
        writer.wait_for_more(200)
        frozen.thaw()
        healed.wait_for_voters(100, 101, 102)
        assert healed.epoch() == epoch


@pytest.mark.parametrize(
    "order",
    [
        (100, 101, 102),
        (102, 101, 100),
        *(
            pytest.param(order, marks=pytest.mark.thorough)
            for order in itertools.permutations((100, 101, 102))
            if order[1] != 101
        ),
    ],
    ids=str,
)
def test_everything_stops_and_starts_again_in_any_order_under_load(
    healed: Quorum, order: tuple[int, int, int]
) -> None:
    with writing(healed, f"order-{order[0]}") as writer:
        writer.wait_for_more()
        for node_id in order:
            healed.controllers[node_id].signal(15)
        for node_id in order:
            healed.controllers[node_id].stop()
        for node_id in order:
            healed.controllers[node_id].start()
        healed.wait_for_voters(100, 101, 102)
        writer.wait_for_more()


@pytest.mark.parametrize(
    "place", [0, *(pytest.param(place, marks=pytest.mark.thorough) for place in (1, 2, 3))]
)
def test_brokers_and_controllers_are_killed_and_come_back_in_any_order(healed: Quorum, place: int) -> None:
    """The broker starts first, last or in between: before or after a majority."""
    nodes: list[Node] = list(healed.controllers.values())
    nodes.insert(place, healed.brokers[1])
    with writing(healed, f"place-{place}") as writer:
        writer.wait_for_more()
        for node in nodes:
            node.kill()
        for node in reversed(nodes):
            node.start()
        healed.wait_for_voters(100, 101, 102)
        healed.brokers[1].wait_ready()
        writer.wait_for_more()


def test_a_broker_and_then_the_controllers_stop_cleanly(healed: Quorum) -> None:
    assert healed.brokers[1].stop() == 143
    for controller in healed.controllers.values():
        assert controller.stop() == (0 if controller.kind == "kraftd" else 143)


def test_all_voters_come_back_with_other_ports_one_after_another(healed: Quorum) -> None:
    """Before the last one moves, the broker's file gets the addresses of the others: a broker that loses its
    leader asks its bootstrap servers alone.
    """
    broker = healed.brokers[1]
    with writing(healed, "moved") as writer:
        for node_id, controller in healed.controllers.items():
            if node_id == 102:
                healed.set_brokers_bootstrap(100, 101)
                broker.stop()
                broker.start()
                broker.wait_ready()
            controller.stop()
            controller.move(free_port())
            healed.start_controllers(node_id)
            healed.wait_until(
                lambda controller=controller: controller.address in healed.voters_addresses(),
                f"the voters' record has {controller.address}",
            )
            healed.wait_for_voters(100, 101, 102)
            writer.wait_for_more()
