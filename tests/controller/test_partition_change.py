"""Changes of a partition, rule by rule, as Kafka's PartitionChangeBuilder decides them.

A row is a partition, a requested change, and the fields that the record sets. Brokers 0 to 5 are alive by
default.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.partitions.change import (
    Assignment,
    ChangeRules,
    Election,
    completed_reassignment,
    partition_change,
)
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata.state import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from tests.controller.cluster import directory, partition

TOPIC = b"a topic's id 016"
NOTHING: dict[str, Any] = {}
PREFERRED, UNCLEAN = Election.PREFERRED, Election.UNCLEAN


def changed(
    state: PartitionState,
    *,
    alive: tuple[int, ...] = (0, 1, 2, 3, 4, 5),
    offline: tuple[bytes, ...] = (),
    elr: bool = True,
    directories: bool = True,
    old_brokers: bool = False,
    min_isr: int = 1,
    **change: Any,
) -> dict[str, Any]:
    """The fields that the record of the change sets; none if there is no record."""
    rules = ChangeRules(
        may_lead=lambda broker, place: broker in alive and place not in offline,
        default_directory=lambda broker: directory(broker, 9),
        elr=elr,
        directories=directories,
        shrink_bumps_leader_epoch=old_brokers,
        record_version=2,
    )
    record = partition_change(rules, TOPIC, 3, state, min_isr, **change)
    if record is None:
        return NOTHING
    assert (record.topic_id, record.partition_id) == (TOPIC, 3)
    unset = PartitionChangeRecord()
    names = [name for name in record.__struct_fields__ if name not in ("topic_id", "partition_id")]
    return {name: getattr(record, name) for name in names if getattr(record, name) != getattr(unset, name)}


def leaderless(replicas: tuple[int, ...], isr: tuple[int, ...] = (), **more: Any) -> PartitionState:
    return partition(replicas, isr=isr, leader=NO_LEADER, **more)


LEADERS: dict[str, tuple[PartitionState, dict[str, Any], dict[str, Any]]] = {
    "a leader that is alive and in sync stays": (partition((0, 1), leader=1), {}, NOTHING),
    "else the first replica that is alive and in sync": (
        partition((0, 1, 2, 3), isr=(3, 0, 2), leader=0),
        {"alive": (1, 2, 3)},
        {"leader": 2},
    ),
    "a leader that left the ISR is replaced": (
        partition((0, 1, 2)),
        {"isr": (1, 2)},
        {"leader": 1, "isr": (1, 2)},
    ),
    "broker 0 is a leader like any other": (partition((1, 0)), {"alive": (0,)}, {"leader": 0}),
    "a replica in an offline directory cannot lead": (
        partition((0, 1)),
        {"offline": (directory(0),)},
        {"leader": 1},
    ),
    "nor can a member of the ISR that is no replica": (
        partition((0, 1), isr=(0, 2)),
        {"alive": (2,), "elr": False},
        {"leader": NO_LEADER},
    ),
    "none leads if no replica in sync is alive": (
        partition((0, 1), isr=(0,)),
        {"alive": (1,), "elr": False},
        {"leader": NO_LEADER},
    ),
    "a partition without a leader has its last one remembered": (
        partition((1, 0)),
        {"alive": ()},
        {"leader": NO_LEADER, "last_known_elr": (1,)},
    ),
    "the leader remembered first is kept": (
        partition((0, 1), last_known_elr=(1,)),
        {"alive": ()},
        {"leader": NO_LEADER},
    ),
    "and forgotten once there is a leader": (
        leaderless((1, 0), isr=(0,), last_known_elr=(1,)),
        {},
        {"leader": 0, "last_known_elr": ()},
    ),
    "without ELR it is neither remembered nor forgotten": (
        leaderless((1, 0), isr=(0,), last_known_elr=(1,)),
        {"elr": False},
        {"leader": 0},
    ),
    "a partition that stays without leader changes nothing": (
        leaderless((0, 1), isr=(0,), last_known_elr=(0,)),
        {"alive": (1,)},
        NOTHING,
    ),
}

PREFERRED_ELECTIONS = {
    "the first replica leads, if it can": (partition((0, 1), leader=1), {}, {"leader": 0}),
    "the leader stays if the first replica is not in sync": (
        partition((0, 1, 2), isr=(1, 2), leader=2),
        {},
        NOTHING,
    ),
    "or not alive": (partition((0, 1, 2), leader=2), {"alive": (1, 2)}, NOTHING),
    "else any replica in sync": (partition((0, 1, 2), leader=1), {"alive": (2,)}, {"leader": 2}),
    "never one out of sync": (
        leaderless((0, 1), isr=(1,), last_known_elr=(1,)),
        {"alive": (0,)},
        NOTHING,
    ),
    "the first eligible replica leads if no replica is in sync": (
        leaderless((0, 1), elr=(0, 1)),
        {"min_isr": 2},
        {"leader": 0, "isr": (0,), "eligible_leader_replicas": (1,)},
    ),
}

UNCLEAN_ELECTIONS = {
    "a replica in sync comes first": (leaderless((0, 1, 2), isr=(2,)), {}, {"leader": 2}),
    "then the first one alive, alone in the ISR and recovering": (
        leaderless((0, 1, 2), isr=(2,)),
        {"alive": (0, 1)},
        {"leader": 0, "isr": (0,), "leader_recovery_state": RECOVERING},
    ),
    "that it recovers is not said twice": (
        leaderless((0, 1, 2), isr=(2,), leader_recovery_state=RECOVERING),
        {"alive": (1,)},
        {"leader": 1, "isr": (1,)},
    ),
    "no replica is eligible after it": (
        leaderless((0, 1, 2, 3), isr=(), elr=(2, 3)),
        {"alive": (1,), "min_isr": 2},
        {
            "leader": 1,
            "isr": (1,),
            "eligible_leader_replicas": (),
            "leader_recovery_state": RECOVERING,
        },
    ),
    "none if no replica is alive": (leaderless((0, 1), last_known_elr=(0,)), {"alive": ()}, NOTHING),
}

LAST_KNOWN_LEADERS = {
    "it leads if no replica is in sync or eligible": (
        leaderless((0, 1), last_known_elr=(1,)),
        {},
        {"leader": 1, "isr": (1,), "last_known_elr": (), "leader_recovery_state": RECOVERING},
    ),
    "not without ELR": (leaderless((0, 1), last_known_elr=(1,)), {"elr": False}, NOTHING),
    "not while it is not alive": (leaderless((0, 1), last_known_elr=(1,)), {"alive": (0,)}, NOTHING),
    "not while a replica is in sync": (
        leaderless((0, 1), isr=(0,), last_known_elr=(1,)),
        {"alive": (1,)},
        NOTHING,
    ),
    "not while a replica is eligible": (
        leaderless((0, 1), elr=(0,), last_known_elr=(1,)),
        {"alive": (1,), "min_isr": 2},
        NOTHING,
    ),
    "not if more than one is remembered": (leaderless((0, 1), last_known_elr=(1, 0)), {}, NOTHING),
    "not if it is no replica any more": (leaderless((0, 1), last_known_elr=(2,)), {}, NOTHING),
    "nor if none is remembered": (leaderless((0, 1)), {}, NOTHING),
}

ELIGIBLE_REPLICAS = {
    "below min.insync.replicas those that leave the ISR are eligible, by their ids": (
        partition((0, 3, 2, 1)),
        {"isr": (0, 2), "min_isr": 3},
        {"isr": (0, 2), "eligible_leader_replicas": (1, 3)},
    ),
    "those that were eligible before stay so": (
        partition((0, 1, 2), isr=(0, 1), elr=(2,)),
        {"isr": (0,), "min_isr": 3},
        {"isr": (0,), "eligible_leader_replicas": (1, 2)},
    ),
    "in the order in which they were written, while they are the same": (
        partition((0, 1, 2), isr=(0,), elr=(2, 1)),
        {"min_isr": 2},
        NOTHING,
    ),
    "those that join the ISR are no longer": (
        partition((0, 1, 2, 3), isr=(0,), elr=(1, 2)),
        {"isr": (0, 1), "min_isr": 3},
        {"isr": (0, 1), "eligible_leader_replicas": (2,)},
    ),
    "an ISR of min.insync.replicas needs none": (
        partition((0, 1, 2), isr=(0,), elr=(1, 2)),
        {"isr": (0, 1), "min_isr": 2},
        {"isr": (0, 1), "eligible_leader_replicas": ()},
    ),
    "and none becomes eligible": (partition((0, 1, 2)), {"isr": (0, 1), "min_isr": 2}, {"isr": (0, 1)}),
    "a broker that may have lost records is not eligible": (
        partition((0, 1, 2), isr=(0,), elr=(1, 2)),
        {"unclean_shutdown": 1, "min_isr": 2},
        {"eligible_leader_replicas": (2,)},
    ),
    "nor if it was in sync until now": (
        partition((0, 1, 2), isr=(0, 1)),
        {"isr": (0,), "unclean_shutdown": 1, "min_isr": 2},
        {"isr": (0,)},
    ),
    "an eligible replica does not lead while one is in sync": (
        partition((0, 1), isr=(0,), elr=(1,)),
        {"alive": (1,), "min_isr": 2},
        {"leader": NO_LEADER, "last_known_elr": (0,)},
    ),
    "it leads once none is, alone in the ISR, and is recovered": (
        leaderless((0, 1, 2), elr=(1, 2), last_known_elr=(0,)),
        {"min_isr": 2},
        {"leader": 1, "isr": (1,), "eligible_leader_replicas": (2,), "last_known_elr": ()},
    ),
    "the last one in sync that leaves is eligible, and the ISR empty": (
        partition((0, 1), isr=(0,)),
        {"isr": (), "alive": (1,)},
        {"leader": NO_LEADER, "isr": (), "eligible_leader_replicas": (0,), "last_known_elr": (0,)},
    ),
    "without ELR it stays in the ISR": (
        partition((0, 1), isr=(0,)),
        {"isr": (), "alive": (1,), "elr": False},
        {"leader": NO_LEADER},
    ),
    "without ELR none is eligible": (
        partition((0, 1, 2)),
        {"isr": (0,), "min_isr": 3, "elr": False},
        {"isr": (0,)},
    ),
    "and those written before ELR was taken back are taken out": (
        partition((0, 1), isr=(0,), elr=(1,)),
        {"min_isr": 2, "elr": False},
        {"eligible_leader_replicas": ()},
    ),
}

ISRS = {
    "the same ISR is no change": (partition((0, 1)), {"isr": (0, 1)}, NOTHING),
    "another order is one": (partition((0, 1)), {"isr": (1, 0)}, {"isr": (1, 0)}),
    "a smaller ISR leaves the leader epoch": (partition((0, 1)), {"isr": (0,)}, {"isr": (0,)}),
    "before 3.6 it makes a new leader epoch (KAFKA-15021)": (
        partition((0, 1)),
        {"isr": (0,), "old_brokers": True},
        {"isr": (0,), "leader": 0},
    ),
    "a larger one does not": (
        partition((0, 1), isr=(0,)),
        {"isr": (0, 1), "old_brokers": True},
        {"isr": (0, 1)},
    ),
    "a new leader has a new epoch anyway": (
        partition((0, 1, 2)),
        {"isr": (2,), "old_brokers": True},
        {"isr": (2,), "leader": 2},
    ),
    "a leader has recovered (KIP-704)": (
        partition((0, 1), isr=(0,), leader_recovery_state=RECOVERING),
        {"recovery_state": RECOVERED},
        {"leader_recovery_state": RECOVERED},
    ),
    "or had before": (partition((0, 1)), {"recovery_state": RECOVERED}, NOTHING),
    "or has not yet": (
        partition((0, 1), isr=(0,), leader_recovery_state=RECOVERING),
        {"recovery_state": RECOVERING},
        NOTHING,
    ),
}

# Here 0 and 1 are replicas, and 2 and 3 are to replace them.
MOVING = partition((2, 3, 0, 1), isr=(0, 1), leader=0, adding_replicas=(2, 3), removing_replicas=(0, 1))

ASSIGNMENTS = {
    "new replicas are added first, in the directories that are their brokers' defaults": (
        partition((0, 1)),
        {"assignment": Assignment((2, 0, 1), (2,), (1,))},
        {
            "replicas": (2, 0, 1),
            "adding_replicas": (2,),
            "removing_replicas": (1,),
            "directories": (directory(2, 9), directory(0), directory(1)),
        },
    ),
    "before 3.7 without directories": (
        partition((0, 1)),
        {"assignment": Assignment((2, 0, 1), (2,), (1,)), "directories": False},
        {"replicas": (2, 0, 1), "adding_replicas": (2,), "removing_replicas": (1,)},
    ),
    "a new replica cannot lead in the same change": (
        partition((0, 1)),
        {"assignment": Assignment((2, 0, 1), (2,)), "alive": (2,), "isr": (0, 1, 2), "elr": False},
        {
            "leader": NO_LEADER,
            "isr": (0, 1, 2),
            "replicas": (2, 0, 1),
            "directories": (directory(2, 9), directory(0), directory(1)),
        },
    ),
    "the same assignment is no change": (partition((0, 1)), {"assignment": Assignment((0, 1))}, NOTHING),
    "another order takes the directories along": (
        partition((0, 1)),
        {"assignment": Assignment((1, 0))},
        {"replicas": (1, 0), "directories": (directory(1), directory(0))},
    ),
    "replicas that are taken away are fenced by a new leader epoch": (
        partition((0, 1, 2), isr=(0, 1)),
        {"assignment": Assignment((0, 1))},
        {"leader": 0, "replicas": (0, 1), "directories": (directory(0), directory(1))},
    ),
    "an empty assignment is none": (MOVING, {"assignment": Assignment((), (2, 3), (0, 1))}, {"leader": 0}),
    "a reassignment waits for the replicas that it adds": (MOVING, {"isr": (0, 1, 2)}, {"isr": (0, 1, 2)}),
    "when they are in sync the others are gone, and one of them leads": (
        MOVING,
        {"isr": (0, 1, 3, 2)},
        {
            "leader": 2,
            "isr": (3, 2),
            "replicas": (2, 3),
            "adding_replicas": (),
            "removing_replicas": (),
            "directories": (directory(2), directory(3)),
        },
    ),
    "one that only adds is complete in the same way": (
        partition((0, 1), isr=(0,), adding_replicas=(1,)),
        {"isr": (0, 1)},
        {"isr": (0, 1), "adding_replicas": ()},
    ),
    "one that only removes too": (
        partition((0, 1), isr=(1,), leader=1, removing_replicas=(0,)),
        {},
        {"leader": 1, "replicas": (1,), "removing_replicas": (), "directories": (directory(1),)},
    ),
    "what it adds and removes can be changed alone": (
        partition((0, 1, 2), isr=(0,), adding_replicas=(1, 2)),
        {"assignment": Assignment((0, 1, 2), (2,), (1,))},
        {"adding_replicas": (2,), "removing_replicas": (1,)},
    ),
    "or only what it adds": (
        partition((0, 1, 2), isr=(0,), adding_replicas=(1, 2)),
        {"assignment": Assignment((0, 1, 2), (2,))},
        {"adding_replicas": (2,)},
    ),
    "or only what it removes": (
        partition((0, 1, 2), isr=(0,), removing_replicas=(0,)),
        {"assignment": Assignment((0, 1, 2), (), (0, 1))},
        {"removing_replicas": (0, 1)},
    ),
    "or only the order of the replicas": (
        partition((0, 1)),
        {"assignment": Assignment((1, 0)), "directories": False},
        {"replicas": (1, 0)},
    ),
    "a replica moves to another directory": (
        partition((0, 1)),
        {"directory": (1, directory(1, 4))},
        {"directories": (directory(0), directory(1, 4))},
    ),
    "or is there already": (partition((0, 1)), {"directory": (1, directory(1))}, NOTHING),
    "before 3.7 it has no directory": (
        partition((0, 1)),
        {"directory": (1, directory(1, 4)), "directories": False},
        NOTHING,
    ),
}


@pytest.mark.parametrize(("state", "change", "record"), LEADERS.values(), ids=LEADERS)
def test_a_leader_that_cannot_stay_is_replaced(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any]
) -> None:
    assert changed(state, **change) == record


@pytest.mark.parametrize(("state", "change", "record"), PREFERRED_ELECTIONS.values(), ids=PREFERRED_ELECTIONS)
def test_a_preferred_election_gives_the_lead_to_the_first_replica(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any]
) -> None:
    assert changed(state, election=PREFERRED, **change) == record


@pytest.mark.parametrize(("state", "change", "record"), UNCLEAN_ELECTIONS.values(), ids=UNCLEAN_ELECTIONS)
def test_an_unclean_election_elects_any_live_replica(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any]
) -> None:
    assert changed(state, election=UNCLEAN, **change) == record


@pytest.mark.parametrize(("state", "change", "record"), LAST_KNOWN_LEADERS.values(), ids=LAST_KNOWN_LEADERS)
@pytest.mark.parametrize("election", [Election.ONLINE, PREFERRED])
def test_the_last_known_leader_is_elected_as_a_last_resort__kip966(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any], election: Election
) -> None:
    assert changed(state, election=election, **change) == record


@pytest.mark.parametrize(("state", "change", "record"), ELIGIBLE_REPLICAS.values(), ids=ELIGIBLE_REPLICAS)
def test_replicas_that_have_all_committed_records_stay_eligible__kip966(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any]
) -> None:
    assert changed(state, **change) == record


@pytest.mark.parametrize(("state", "change", "record"), ISRS.values(), ids=ISRS)
def test_a_proposed_isr_or_recovery_state_is_recorded(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any]
) -> None:
    assert changed(state, **change) == record


@pytest.mark.parametrize(("state", "change", "record"), ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_an_assignment_sets_replicas_and_directories__kip455_kip858(
    state: PartitionState, change: dict[str, Any], record: dict[str, Any]
) -> None:
    assert changed(state, **change) == record


@pytest.mark.parametrize(
    ("replicas", "adding", "removing", "isr", "complete"),
    [
        pytest.param((1, 0), (1,), (), (0,), None, id="an added replica is awaited"),
        pytest.param((1, 0), (1,), (), (0, 1), ((1, 0), (0, 1)), id="then it is complete"),
        pytest.param((1, 2, 0), (1, 2), (), (2, 0), None, id="all added ones are"),
        pytest.param((0, 1), (), (1,), (1,), None, id="not before one that stays is in sync"),
        pytest.param((0, 1), (), (0, 1), (0, 1), None, id="not if none would stay"),
        pytest.param((0, 1), (), (0, 1), (2,), None, id="not even with another in the ISR"),
        pytest.param(
            (3, 2, 1), (3,), (1,), (3, 1), ((3, 2), (3,)), id="as many added: others are not awaited"
        ),
        pytest.param((3, 4, 2, 1), (3, 4), (1,), (4, 3), ((3, 4, 2), (4, 3)), id="more added: nor then"),
        pytest.param((3, 2, 1, 0), (3,), (1, 0), (3, 1), None, id="fewer added: all that stay are awaited"),
        pytest.param((3, 2, 1, 0), (3,), (1, 0), (2, 3, 1), ((3, 2), (2, 3)), id="fewer added: complete"),
    ],
)
def test_a_reassignment_is_complete_when_the_isr_allows_it__kip455(
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    isr: tuple[int, ...],
    complete: tuple[tuple[int, ...], tuple[int, ...]] | None,
) -> None:
    assert completed_reassignment(replicas, adding, removing, isr) == complete
