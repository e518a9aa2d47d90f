"""Controllers of kraftd and of Apache Kafka in one quorum: each leads once, under operations and kills.

With --controller=apache all three are Kafka's: a mix may log no error or warning that these do not.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraftd.messages.leader_change_message import LeaderChangeMessage
from testkit.node import Kind
from testkit.quorum import Quorum
from tests.kafka.quorum.images import (
    SNAPSHOTS_OFTEN,
    assert_equal_dumps,
    assert_equal_snapshots,
    assert_shown_by_kafkas_shell,
    whole_log,
)
from tests.kafka.quorum.logged_errors import assert_nothing_new
from tests.kafka.quorum.writers import Administrator, writing

pytestmark = pytest.mark.kafka

MIXES: dict[str, tuple[Kind, Kind, Kind]] = {
    "one-of-kraftd": ("kraftd", "apache", "apache"),
    "two-of-kraftd": ("kraftd", "kraftd", "apache"),
}
# With one voter frozen, the former leader elects each of them: in both mixes one of the other kind.
LEADERS = (100, 102, 101, 100)
BROKERS = (1, 2)
# The least number of compared records: the test waits seven times for 20 topics of the writer.
MIN_BATCHES = 200


@pytest.mark.parametrize(
    ("mix", "static"),
    [
        pytest.param("one-of-kraftd", False, id="one-of-kraftd-dynamic"),
        pytest.param("two-of-kraftd", True, marks=pytest.mark.thorough, id="two-of-kraftd-static"),
    ],
)
def test_a_mixed_quorum_keeps_one_log_whichever_controller_leads(
    mix: str, static: bool, kind: Kind, tmp_path: Path
) -> None:
    kinds: tuple[Kind, ...] = MIXES[mix] if kind == "kraftd" else ("apache",) * 3
    voters = dict(zip((100, 101, 102), kinds, strict=True))
    with Quorum(tmp_path, voters, static=static, controller_properties=SNAPSHOTS_OFTEN) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(*BROKERS)
        with writing(quorum, "mixed", Administrator) as writer:
            for node_id in LEADERS:
                with writer.paused():
                    quorum.make_lead(node_id)
                writer.wait_for_more()
            for controller in quorum.controllers.values():
                controller.kill()
                quorum.wait_for_leader()
                writer.wait_for_more()
                quorum.heal()
            quorum.create_topic("by-kafkas-tool", partitions=3, replication_factor=2)
        topics = {topic.name for topic in quorum.metadata_by(1).topics}
        quorum.stop_all()
        assert quorum.assert_equal_logs() > MIN_BATCHES
        if kind == "kraftd":
            assert electors(quorum) >= {("kraftd", "apache"), ("apache", "kraftd")}
            assert kraftd_was_granted_a_pre_vote(quorum)
            assert kraftd_granted_a_pre_vote(quorum)
        assert assert_equal_snapshots(quorum) >= len(voters)
        for node_id in voters:
            assert assert_equal_dumps(quorum, node_id) > MIN_BATCHES
        assert_shown_by_kafkas_shell(quorum, 101, topics, tmp_path)
        assert_nothing_new(quorum.nodes, "WARN")


def electors(quorum: Quorum) -> set[tuple[Kind, Kind]]:
    """The kinds of each elected controller and of its electors, for all elections in the log."""
    log = whole_log(quorum)
    kinds = {node_id: controller.kind for node_id, controller in quorum.controllers.items()}
    return {
        (kinds[message.leader_id], kinds[granting.voter_id])
        for _, message in log.control_messages(log.end)
        if isinstance(message, LeaderChangeMessage)
        for granting in message.granting_voters
        if granting.voter_id != message.leader_id
    }


def kraftd_was_granted_a_pre_vote(quorum: Quorum) -> bool:
    """Return whether a controller of Kafka's granted kraftd a pre-vote, according to its log (KIP-996)."""
    granted = re.compile(rf"Vote request .*replicaId=({kraftd_ids(quorum)}),.*preVote=true.* is granted")
    return any(granted.search(text) for text in logs_of_kafkas_controllers(quorum))


def kraftd_granted_a_pre_vote(quorum: Quorum) -> bool:
    """Return whether kraftd's pre-votes made a controller of Kafka's a candidate, by its log (KIP-996)."""
    granted = re.compile(
        r"Completed transition to CandidateState\(.*\) from ProspectiveState\(.*"
        rf"\b({kraftd_ids(quorum)})=VoterState\(replicaKey=ReplicaKey\([^)]*\), state=GRANTED\)"
    )
    return any(granted.search(text) for text in logs_of_kafkas_controllers(quorum))


def kraftd_ids(quorum: Quorum) -> str:
    """The ids of kraftd's controllers, as alternatives of a pattern."""
    return "|".join(str(one.node_id) for one in quorum.controllers.values() if one.kind == "kraftd")


def logs_of_kafkas_controllers(quorum: Quorum) -> list[str]:
    return [one.log.read_text() for one in quorum.controllers.values() if one.kind == "apache"]
