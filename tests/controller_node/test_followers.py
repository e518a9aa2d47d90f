"""Two running nodes of a quorum of three: following, leading, and changes of leadership.

Nodes, cores, images, logs and codecs are real; the test carries the frames between the nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node.events import DiskFilled
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.metadata.features import bootstrap_records, format_levels
from kraftd.metadata_dir.formatting.format import FormatPlan, format_directories
from kraftd.metadata_dir.formatting.voters import InitialVoter
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.replica.effects import SendToController
from kraftd.replica.events import ControllerAnswered
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.table import table_of
from tests.controller_node.harness import CLUSTER_ID, DIRECTORY, Harness

VOTERS = tuple(
    InitialVoter(node_id, "127.0.0.1", 8993 + node_id, bytes(15) + bytes([node_id]))
    for node_id in (100, 101, 102)
)


class Voter(Harness):
    """One of three voters, with the requests that it sends."""

    def __init__(self, tmp_path: Path, node_id: int, disk: MemoryDisk | None = None) -> None:
        self.node_id = self.seed = node_id
        self.sent: list[Any] = []
        tmp_path.mkdir()
        port = 8993 + node_id
        super().__init__(
            tmp_path,
            disk,
            node__id=node_id,
            listeners=f"CONTROLLER://127.0.0.1:{port}",
            kraftd__first__election__without=102,  # it never runs
        )

    def _format(self) -> None:
        levels = format_levels({}, None, dynamic_quorum=True)
        records = tuple(bootstrap_records(levels, ()))
        plan = FormatPlan(
            self.node_id,
            CLUSTER_ID,
            (DIRECTORY,),
            DIRECTORY,
            "CONTROLLER",
            records,
            levels["kraft.version"],
            VOTERS,
        )
        format_directories(self.disk, plan, new_uuid=self.rng.uuid, now_ms=self.clock.ms)

    def _perform(self, made: list[Any]) -> None:
        for effect in made:
            if isinstance(effect, raft_effects.Send | SendToController):
                self.sent.append(effect)
            elif isinstance(effect, raft_effects.LocateBatch):
                start = self.storage.log.batch_start(effect.offset)
                self.step(raft_events.BatchLocated(effect.offset, start))
            elif isinstance(effect, raft_effects.TruncateLog):
                assert self.storage.log.truncate_to(effect.end_offset) == effect.end_offset
            else:
                super()._perform([effect])


class Two:
    """Voters 100 and 101; voter 102 is absent. `cut` stops all messages between them."""

    def __init__(self, tmp_path: Path) -> None:
        self.voters = {node_id: Voter(tmp_path / str(node_id), node_id) for node_id in (100, 101)}
        self.cut = False
        self._waiting: list[tuple[Voter, Any, Voter, tuple[int, int]]] = []
        for voter in self.voters.values():
            voter.start()

    def talk(self) -> None:
        """Deliver every message that can be delivered now."""
        for _ in range(1000):
            moved = False
            for voter in self.voters.values():
                sent, voter.sent = voter.sent, []
                for effect in sent:
                    moved = True
                    self._deliver(voter, effect)
            for waiting in list(self._waiting):
                voter, effect, other, place = waiting
                message = other.answer(place)
                if message is not None:
                    moved = True
                    self._waiting.remove(waiting)
                    self._answer(voter, effect, message)
            if not moved:
                return
        raise AssertionError("they talk without end")

    def _deliver(self, voter: Voter, effect: Any) -> None:
        other = next(
            (one for one in self.voters.values() if effect.destination.port == 8993 + one.node_id), None
        )
        if other is None or self.cut:
            self._answer(voter, effect, None)
            return
        key = table_of(type(effect.message)).key
        assert key is not None
        place = other.send(key, valid_versions(key)[1], effect.message, connection_id=voter.node_id)
        self._waiting.append((voter, effect, other, place))

    @staticmethod
    def _answer(voter: Voter, effect: Any, message: Any) -> None:
        if isinstance(effect, SendToController):
            voter.step(ControllerAnswered(effect.request_id, message))
        elif message is None:
            voter.step(raft_events.SendFailed(effect.send_id))
        else:
            voter.step(raft_events.ResponseReceived(effect.send_id, message))

    def lose(self) -> None:
        """Drop all messages that are under way or parked."""
        waiting, self._waiting = self._waiting, []
        for voter, effect, _, _ in waiting:
            self._answer(voter, effect, None)

    def wait(self, ms: int) -> None:
        for _ in range(ms // 10):
            for voter in self.voters.values():
                voter.advance(10)
            self.talk()

    @property
    def leader(self) -> Voter:
        return next(one for one in self.voters.values() if one.node.active)

    @property
    def follower(self) -> Voter:
        return next(one for one in self.voters.values() if not one.node.active)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    """A leader and its follower, after all messages have been delivered."""
    both = Two(tmp_path)
    both.wait(4000)
    assert both.leader is not both.follower
    return both


def create(voter: Voter, name: str) -> tuple[int, int]:
    return voter.send(
        ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms=5000)
    )


def test_a_follower_applies_committed_records_and_has_the_leaders_image(two: Two) -> None:
    two.leader.register()
    two.talk()
    assert two.leader.node.image.brokers.keys() == {1}
    assert two.follower.node.image == two.leader.node.image
    assert two.follower.node.image.offset == two.leader.node.image.offset


def test_both_controllers_register_the_follower_through_the_leader__kip919(two: Two) -> None:
    for voter in two.voters.values():
        known = voter.node.image.controllers
        assert known.keys() == {100, 101}
        assert all(known[one].incarnation_id == two.voters[one].node.identity.incarnation_id for one in known)


def test_a_follower_names_the_leader_and_decides_nothing(two: Two) -> None:
    answer = two.follower.answer(create(two.follower, "t"))
    assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    cluster = two.follower.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
    assert cluster.controller_id == two.leader.node_id
    versions = two.follower.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    assert versions.finalized_features_epoch >= 0
    assert {one.name for one in versions.finalized_features} >= {"metadata.version", "kraft.version"}


def test_a_leader_without_a_majority_acknowledges_nothing_and_undoes_records(
    two: Two,
) -> None:
    leader = two.leader
    leader.register()
    two.talk()
    before = two.follower.node.image.records()
    two.cut = True
    place = leader.send(ApiKey.BROKER_REGISTRATION, 4, leader.registration(2))
    assert leader.answer(place) is None
    assert leader.node.image.brokers.keys() == {1, 2}
    two.wait(4000)
    assert leader.answer(place).error_code == ErrorCode.NOT_CONTROLLER
    assert not leader.node.active
    assert leader.node.image.brokers.keys() == {1}
    assert list(leader.node.image.records()) == list(before)


def test_after_a_partition_both_agree_on_the_uncommitted_tail(two: Two) -> None:
    leader = two.leader
    two.cut = True
    leader.send(ApiKey.BROKER_REGISTRATION, 4, leader.registration(7))
    two.wait(4000)
    two.cut = False
    two.wait(6000)
    one, other = (voter.node.image for voter in two.voters.values())
    assert one.offset == other.offset
    assert one == other
    place = two.leader.send(ApiKey.BROKER_REGISTRATION, 4, two.leader.registration(8))
    assert two.leader.answer(place) is None  # until the other voter has it
    two.talk()
    assert two.leader.answer(place).error_code == ErrorCode.NONE
    assert all(8 in voter.node.image.brokers for voter in two.voters.values())


def test_a_leader_that_shuts_down_hands_over_to_an_up_to_date_voter(two: Two) -> None:
    leader, follower = two.leader, two.follower
    leader.register()
    two.talk()
    leader.node.stop()
    leader.step(raft_events.ShutdownRequested(5000))
    two.talk()
    two.wait(100)
    assert follower.node.core.is_leader  # it decides once a second voter follows
    assert follower.node.image.brokers.keys() == {1}
    assert "ShutdownCompleted" in leader.logged_texts


def test_no_heartbeat_is_answered_by_a_leader_that_leaves_or_has_left(two: Two) -> None:
    leader = two.leader
    leader.register()
    two.talk()
    epoch = leader.node.image.brokers[1].epoch
    heartbeat = BrokerHeartbeatRequest(1, epoch, leader.storage.log.log_end)
    first = leader.send(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 2)
    two.talk()
    assert leader.answer(first).is_fenced is False
    leader.node.stop()
    assert leader.ask(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 2).error_code == ErrorCode.NOT_CONTROLLER
    leader.step(raft_events.ShutdownRequested(5000))
    two.talk()
    two.wait(100)
    assert not leader.node.active
    leader.node.decision_rights.stopping = False
    assert leader.ask(ApiKey.BROKER_HEARTBEAT, 1, heartbeat, 2).error_code == ErrorCode.NOT_CONTROLLER


def remove(voter: Voter, node_id: int) -> None:
    request = RemoveRaftVoterRequest(CLUSTER_ID, node_id, VOTERS[node_id - 100].directory_id)
    voter.send(ApiKey.REMOVE_RAFT_VOTER, 0, request, connection_id=3)


def test_work_due_at_a_commit_is_undone_if_that_commit_ends_the_leadership(two: Two) -> None:
    leader, follower = two.leader, two.follower
    remove(leader, 102)
    two.wait(100)
    leader.intrude(9)  # when this commits, the leader must register again
    remove(leader, leader.node_id)
    two.lose()  # the answer to the next fetch has both records
    two.wait(1000)
    assert not leader.node.active and len(leader.node.decisions.appends) == 0
    two.wait(4000)
    assert two.leader is follower
    assert leader.node.image == follower.node.image
    known = follower.node.image.controllers[leader.node_id]
    assert known.incarnation_id == leader.node.identity.incarnation_id, "it asks the new leader"


TWIN = "another process runs under this node's id"


def intrude(two: Two, incarnation: int, **changes: Any) -> None:
    """Send the leader the registration of another process under the follower's id."""
    request = two.follower.node.registration.request()
    request.incarnation_id = bytes(15) + bytes([incarnation])
    for name, value in changes.items():
        setattr(request, name, value)
    two.leader.send(ApiKey.CONTROLLER_REGISTRATION, 0, request, connection_id=3)
    two.talk()


def test_a_node_logs_that_another_process_registers_under_its_id(two: Two) -> None:
    follower = two.follower
    two.wait(1000)
    assert follower.node.registration.duplicate() == []
    intrude(two, 9)
    two.wait(1000)
    (line,) = follower.node.registration.duplicate()
    assert line.startswith(f"node {follower.node_id} runs more than once, here and with the listeners ")
    assert "CONTROLLER://127.0.0.1:" in line
    assert line.rpartition("; ")[2].startswith("give one of them an id of its own")
    for number in range(3):
        intrude(two, number)
        two.wait(6_000)
    assert follower.logged_texts.count(TWIN) == 1, "once a minute"
    two.wait(60_000)
    assert follower.node.registration.duplicate() == []


def test_a_forgotten_or_restarted_node_is_no_second_process(two: Two) -> None:
    follower = two.follower
    two.wait(1000)
    intrude(two, 9, listeners=[])
    two.wait(10_000)
    follower.node.registration._is_in_force = False  # like the next run's, which sees this record in its log
    intrude(two, 10)
    follower.node.registration.check_for_duplicate()
    assert TWIN not in follower.logged_texts
    assert follower.node.registration.duplicate() == []


def test_a_lost_connection_to_the_leader_starts_an_election_at_once(two: Two) -> None:
    follower, old_leader = two.follower, two.leader
    follower.step(raft_events.ConnectionLost(old_leader.node_id))
    follower.advance(50)
    votes = [one for one in follower.sent if one.message.__class__.__name__ == "VoteRequest"]
    assert {one.destination.node_id for one in votes} == {old_leader.node_id, 102}
    assert all(one.message.topics[0].partitions[0].pre_vote for one in votes)


def test_the_last_leader_is_named_until_another_is_known(two: Two) -> None:
    leader = two.leader
    two.cut = True
    two.wait(4000)  # it resigns, and then starts an election that it cannot win
    for _ in range(40):
        if leader.node.core.leader_id is None:
            break
        two.wait(100)
    assert leader.node.core.leader_id is None
    cluster = leader.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
    assert cluster.controller_id == leader.node.leadership.last_leader_id is not None


def test_a_leader_whose_disk_is_full_resigns_in_favour_of_the_other_voter(two: Two) -> None:
    leader, follower = two.leader, two.follower
    leader.step(DiskFilled("no space left"))
    two.wait(1_000)
    assert two.leader is follower and not leader.node.active
