"""Controllers are killed, frozen, stopped and started again while topics are created."""

from __future__ import annotations

import itertools

import pytest

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from kraftd.wire.table import api_key
from tests.faults.quorum import CREATE_VERSION, VOTERS, FaultyQuorum, surviving


def test_a_killed_leader_loses_nothing(three: FaultyQuorum) -> None:
    with surviving(three, "killed-leader") as writer:
        epoch, leader = three.epoch(), three.controller
        leader.kill()
        assert three.wait_for_leader(after_epoch=epoch) != leader.node_id
        writer.wait_for_more()


def test_a_killed_follower_catches_up(three: FaultyQuorum) -> None:
    with surviving(three, "killed-follower") as writer:
        follower = three.others(three.wait_for_leader())[0]
        three.controllers[follower].kill()
        writer.wait_for_more()


def test_all_three_controllers_come_back_from_kills_with_everything(three: FaultyQuorum) -> None:
    with surviving(three, "killed-all"):
        for controller in three.controllers.values():
            controller.kill()


def test_a_leader_that_was_frozen_wakes_up_as_a_follower(three: FaultyQuorum) -> None:
    with surviving(three, "frozen") as writer:
        leader, epoch = three.controller, three.epoch()
        request = CreateTopicsRequest([CreatableTopic("from-the-past", 1, 1)], 10_000)
        with three.connect(leader.node_id) as client:
            leader.freeze()
            client.socket.sendall(client.frame(request, CREATE_VERSION))
            three.wait_for_leader(after_epoch=epoch)
            writer.wait_for_more()
            leader.thaw()
            _, answer = parse_response(api_key(request), CREATE_VERSION, client.receive_frame())
        assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]
        writer.wait_for_more()
    assert "from-the-past" not in three.check().topic_names()


@pytest.mark.parametrize("order", list(itertools.permutations(VOTERS)), ids=str)
def test_controllers_can_be_stopped_and_started_in_any_order(
    three: FaultyQuorum, order: tuple[int, ...]
) -> None:
    with surviving(three, "-".join(map(str, order))) as writer:
        for node_id in order:
            three.controllers[node_id].signal(15)
        for node_id in order:
            assert three.controllers[node_id].stop() == 0
        for node_id in order[1:]:
            three.controllers[node_id].start()
        three.wait_for_leader()
        writer.wait_for_more()
        three.controllers[order[0]].start()


def test_a_rolling_restart_does_not_interrupt_the_service(three: FaultyQuorum) -> None:
    with surviving(three, "rolled") as writer:
        for controller in three.controllers.values():
            assert controller.stop() == 0
            writer.wait_for_more(5)
            three.start_controllers(controller.node_id)
            three.wait_for_voters(*VOTERS)


def test_healing_starts_a_node_that_got_sigterm_while_it_was_frozen(three: FaultyQuorum) -> None:
    before = three.controllers[101].pid
    three.controllers[101].freeze()
    three.controllers[101].signal(15)  # heeded after the thaw, so that the node still runs when it is healed
    three.heal()
    assert three.controllers[101].pid != before
