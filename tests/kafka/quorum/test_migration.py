"""What docs/migration.md says, done: a quorum of Apache Kafka's controllers becomes one of kraftd, and back.

Voter by voter, in the same directories with the same files, while topics are created all the time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.node import Kind
from tests.kafka.quorum.controllers import Quorum, Writer, writing

pytestmark = pytest.mark.kafka

IDS = (100, 101, 102)
WAY: tuple[Kind, ...] = ("kraftd", "apache")


def move(quorum: Quorum, kind: Kind, writer: Writer) -> None:
    """Every voter stopped and started as the other kind, the leader last."""
    leader = quorum.wait_for_leader()
    for node_id in sorted(IDS, key=lambda one: one == leader):
        controller = quorum.controllers[node_id]
        controller.stop()
        controller.kind = kind
        quorum.start_controllers(node_id)
        quorum.wait_for_voters(*IDS)
        writer.wait_for_more()


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_a_quorum_moves_to_kraftd_and_back_voter_by_voter(static: bool, tmp_path: Path) -> None:
    with Quorum(tmp_path, dict.fromkeys(IDS, "apache"), static=static) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        with writing(quorum, "moving") as writer:
            writer.wait_for_more()
            for kind in WAY:
                move(quorum, kind, writer)
                assert quorum.quorum_status()["CurrentVoters"].count('"id"') == len(IDS)
        quorum.stop_all()
        assert quorum.assert_equal_logs() > 100
