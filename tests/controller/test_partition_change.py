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
    "the first replica that is alive and in sync replaces a dead leader": (
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
    "a member of the ISR that is no replica cannot lead": (
        partition((0, 1), isr=(0, 2)),
        {"alive": (2,), "elr": False},
        {"leader": NO_LEADER},
    ),
    "no replica leads if none in sync is alive": (
        partition((0, 1), isr=(0,)),
        {"alive": (1,), "elr": False},
        {"leader": NO_LEADER},
    ),
    "the last leader of a partition without a leader is remembered": (
        partition((1, 0)),
        {"alive": ()},
        {"leader": NO_LEADER, "last_known_elr": (1,)},
    ),
    "a later leader does not replace the remembered one": (
        partition((0, 1), last_known_elr=(1,)),
        {"alive": ()},
        {"leader": NO_LEADER},
    ),
    "the remembered leader is forgotten when a new one leads": (
        leaderless((1, 0), isr=(0,), last_known_elr=(1,)),
        {},
        {"leader": 0, "last_known_elr": ()},
    ),
    "without ELR the remembered leader is kept": (
        leaderless((1, 0), isr=(0,), last_known_elr=(1,)),
        {"elr": False},
        {"leader": 0},
    ),
    "a partition that stays without a leader does not change": (
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
    "the leader stays if the first replica is not alive": (
        partition((0, 1, 2), leader=2),
        {"alive": (1, 2)},
        NOTHING,
    ),
    "another replica in sync leads if neither leader nor first replica is alive": (
        partition((0, 1, 2), leader=1),
        {"alive": (2,)},
        {"leader": 2},
    ),
    "a replica out of sync does not lead": (
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
    "the first live replica leads, alone in the ISR and recovering": (
        leaderless((0, 1, 2), isr=(2,)),
        {"alive": (0, 1)},
        {"leader": 0, "isr": (0,), "leader_recovery_state": RECOVERING},
    ),
    "the state RECOVERING is not written twice": (
        leaderless((0, 1, 2), isr=(2,), leader_recovery_state=RECOVERING),
        {"alive": (1,)},
        {"leader": 1, "isr": (1,)},
    ),
    "an unclean election leaves no replica eligible": (
        leaderless((0, 1, 2, 3), isr=(), elr=(2, 3)),
        {"alive": (1,), "min_isr": 2},
        {
            "leader": 1,
            "isr": (1,),
            "eligible_leader_replicas": (),
            "leader_recovery_state": RECOVERING,
        },
    ),
    "no replica leads if none is alive": (leaderless((0, 1), last_known_elr=(0,)), {"alive": ()}, NOTHING),
}

LAST_KNOWN_LEADERS = {
    "the last known leader leads if no replica is in sync or eligible": (
        leaderless((0, 1), last_known_elr=(1,)),
        {},
        {"leader": 1, "isr": (1,), "last_known_elr": (), "leader_recovery_state": RECOVERING},
    ),
    "no election without ELR": (leaderless((0, 1), last_known_elr=(1,)), {"elr": False}, NOTHING),
    "no election of a dead broker": (leaderless((0, 1), last_known_elr=(1,)), {"alive": (0,)}, NOTHING),
    "no election while a replica is in sync": (
        leaderless((0, 1), isr=(0,), last_known_elr=(1,)),
        {"alive": (1,)},
        NOTHING,
    ),
    "no election while a replica is eligible": (
        leaderless((0, 1), elr=(0,), last_known_elr=(1,)),
        {"alive": (1,), "min_isr": 2},
        NOTHING,
    ),
    "no election if several leaders are remembered": (leaderless((0, 1), last_known_elr=(1, 0)), {}, NOTHING),
    "no election of a former replica": (leaderless((0, 1), last_known_elr=(2,)), {}, NOTHING),
    "no election if no leader is remembered": (leaderless((0, 1)), {}, NOTHING),
}

ELIGIBLE_REPLICAS = {
    "below min.insync.replicas brokers that leave the ISR are eligible, by id": (
        partition((0, 3, 2, 1)),
        {"isr": (0, 2), "min_isr": 3},
        {"isr": (0, 2), "eligible_leader_replicas": (1, 3)},
    ),
    "eligible replicas stay eligible": (
        partition((0, 1, 2), isr=(0, 1), elr=(2,)),
        {"isr": (0,), "min_isr": 3},
        {"isr": (0,), "eligible_leader_replicas": (1, 2)},
    ),
    "the same eligible replicas keep their order": (
        partition((0, 1, 2), isr=(0,), elr=(2, 1)),
        {"min_isr": 2},
        NOTHING,
    ),
    "a replica that joins the ISR is no longer eligible": (
        partition((0, 1, 2, 3), isr=(0,), elr=(1, 2)),
        {"isr": (0, 1), "min_isr": 3},
        {"isr": (0, 1), "eligible_leader_replicas": (2,)},
    ),
    "an ISR of min.insync.replicas needs no eligible replica": (
        partition((0, 1, 2), isr=(0,), elr=(1, 2)),
        {"isr": (0, 1), "min_isr": 2},
        {"isr": (0, 1), "eligible_leader_replicas": ()},
    ),
    "a replica that leaves an ISR with min.insync.replicas is not eligible": (
        partition((0, 1, 2)),
        {"isr": (0, 1), "min_isr": 2},
        {"isr": (0, 1)},
    ),
    "a broker that may have lost records is not eligible": (
        partition((0, 1, 2), isr=(0,), elr=(1, 2)),
        {"unclean_shutdown": 1, "min_isr": 2},
        {"eligible_leader_replicas": (2,)},
    ),
    "a broker in sync that may have lost records does not become eligible": (
        partition((0, 1, 2), isr=(0, 1)),
        {"isr": (0,), "unclean_shutdown": 1, "min_isr": 2},
        {"isr": (0,)},
    ),
    "an eligible replica does not lead while one is in sync": (
        partition((0, 1), isr=(0,), elr=(1,)),
        {"alive": (1,), "min_isr": 2},
        {"leader": NO_LEADER, "last_known_elr": (0,)},
    ),
    "an eligible replica leads an empty ISR, alone in it and recovered": (
        leaderless((0, 1, 2), elr=(1, 2), last_known_elr=(0,)),
        {"min_isr": 2},
        {"leader": 1, "isr": (1,), "eligible_leader_replicas": (2,), "last_known_elr": ()},
    ),
    "the last replica in sync becomes eligible, and the ISR is empty": (
        partition((0, 1), isr=(0,)),
        {"isr": (), "alive": (1,)},
        {"leader": NO_LEADER, "isr": (), "eligible_leader_replicas": (0,), "last_known_elr": (0,)},
    ),
    "without ELR the last replica stays in the ISR": (
        partition((0, 1), isr=(0,)),
        {"isr": (), "alive": (1,), "elr": False},
        {"leader": NO_LEADER},
    ),
    "without ELR no replica is eligible": (
        partition((0, 1, 2)),
        {"isr": (0,), "min_isr": 3, "elr": False},
        {"isr": (0,)},
    ),
    "without ELR eligible replicas of earlier records are removed": (
        partition((0, 1), isr=(0,), elr=(1,)),
        {"min_isr": 2, "elr": False},
        {"eligible_leader_replicas": ()},
    ),
}

ISRS = {
    "the same ISR is no change": (partition((0, 1)), {"isr": (0, 1)}, NOTHING),
    "another order of the ISR is a change": (partition((0, 1)), {"isr": (1, 0)}, {"isr": (1, 0)}),
    "a smaller ISR leaves the leader epoch": (partition((0, 1)), {"isr": (0,)}, {"isr": (0,)}),
    "before 3.6 a smaller ISR has a new leader epoch (KAFKA-15021)": (
        partition((0, 1)),
        {"isr": (0,), "old_brokers": True},
        {"isr": (0,), "leader": 0},
    ),
    "before 3.6 a larger ISR leaves the leader epoch": (
        partition((0, 1), isr=(0,)),
        {"isr": (0, 1), "old_brokers": True},
        {"isr": (0, 1)},
    ),
    "before 3.6 a new leader has one new leader epoch": (
        partition((0, 1, 2)),
        {"isr": (2,), "old_brokers": True},
        {"isr": (2,), "leader": 2},
    ),
    "a leader has recovered (KIP-704)": (
        partition((0, 1), isr=(0,), leader_recovery_state=RECOVERING),
        {"recovery_state": RECOVERED},
        {"leader_recovery_state": RECOVERED},
    ),
    "a leader that has recovered does not change": (
        partition((0, 1)),
        {"recovery_state": RECOVERED},
        NOTHING,
    ),
    "a leader that is still recovering does not change": (
        partition((0, 1), isr=(0,), leader_recovery_state=RECOVERING),
        {"recovery_state": RECOVERING},
        NOTHING,
    ),
}

# A reassignment in progress: 2 and 3 replace 0 and 1.
MOVING = partition((2, 3, 0, 1), isr=(0, 1), leader=0, adding_replicas=(2, 3), removing_replicas=(0, 1))

ASSIGNMENTS = {
    "new replicas are added in their brokers' default directories": (
        partition((0, 1)),
        {"assignment": Assignment((2, 0, 1), (2,), (1,))},
        {
            "replicas": (2, 0, 1),
            "adding_replicas": (2,),
            "removing_replicas": (1,),
            "directories": (directory(2, 9), directory(0), directory(1)),
        },
    ),
    "before 3.7 new replicas have no directories": (
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
    "another order of the replicas moves their directories too": (
        partition((0, 1)),
        {"assignment": Assignment((1, 0))},
        {"replicas": (1, 0), "directories": (directory(1), directory(0))},
    ),
    "a new leader epoch fences removed replicas": (
        partition((0, 1, 2), isr=(0, 1)),
        {"assignment": Assignment((0, 1))},
        {"leader": 0, "replicas": (0, 1), "directories": (directory(0), directory(1))},
    ),
    "an empty assignment changes nothing but the leader epoch": (
        MOVING,
        {"assignment": Assignment((), (2, 3), (0, 1))},
        {"leader": 0},
    ),
    "a reassignment waits for the replicas that it adds": (MOVING, {"isr": (0, 1, 2)}, {"isr": (0, 1, 2)}),
    "a completed reassignment removes the old replicas, and a new one leads": (
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
    "a reassignment that only adds completes when all added are in sync": (
        partition((0, 1), isr=(0,), adding_replicas=(1,)),
        {"isr": (0, 1)},
        {"isr": (0, 1), "adding_replicas": ()},
    ),
    "a reassignment that only removes completes at once": (
        partition((0, 1), isr=(1,), leader=1, removing_replicas=(0,)),
        {},
        {"leader": 1, "replicas": (1,), "removing_replicas": (), "directories": (directory(1),)},
    ),
    "a change of the added and removed replicas leaves the replicas": (
        partition((0, 1, 2), isr=(0,), adding_replicas=(1, 2)),
        {"assignment": Assignment((0, 1, 2), (2,), (1,))},
        {"adding_replicas": (2,), "removing_replicas": (1,)},
    ),
    "a change of the added replicas leaves the rest": (
        partition((0, 1, 2), isr=(0,), adding_replicas=(1, 2)),
        {"assignment": Assignment((0, 1, 2), (2,))},
        {"adding_replicas": (2,)},
    ),
    "a change of the removed replicas leaves the rest": (
        partition((0, 1, 2), isr=(0,), removing_replicas=(0,)),
        {"assignment": Assignment((0, 1, 2), (), (0, 1))},
        {"removing_replicas": (0, 1)},
    ),
    "without directories only the order of the replicas changes": (
        partition((0, 1)),
        {"assignment": Assignment((1, 0)), "directories": False},
        {"replicas": (1, 0)},
    ),
    "a replica moves to another directory": (
        partition((0, 1)),
        {"directory": (1, directory(1, 4))},
        {"directories": (directory(0), directory(1, 4))},
    ),
    "a replica that is in the directory already does not move": (
        partition((0, 1)),
        {"directory": (1, directory(1))},
        NOTHING,
    ),
    "before 3.7 a replica moves to no directory": (
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


def test_a_replica_removed_by_a_reassignment_never_leads__kip966() -> None:
    """As in Kafka 4.3.1; the KIP says that only the final replicas are eligible."""
    moved = partition((3, 0, 1), isr=(3, 0, 1), adding_replicas=(3,), removing_replicas=(0, 1))
    record = changed(moved, isr=(3, 0, 1), min_isr=2)
    assert (record["replicas"], record["isr"], record["eligible_leader_replicas"]) == ((3,), (3,), (0, 1))
    assert changed(leaderless((3,), elr=(0, 1)), min_isr=2) == NOTHING


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
        pytest.param((1, 0), (1,), (), (0,), None, id="an added replica is not in sync"),
        pytest.param((1, 0), (1,), (), (0, 1), ((1, 0), (0, 1)), id="the added replica is in sync"),
        pytest.param((1, 2, 0), (1, 2), (), (2, 0), None, id="one of two added replicas is not in sync"),
        pytest.param((0, 1), (), (1,), (1,), None, id="no remaining replica is in sync"),
        pytest.param((0, 1), (), (0, 1), (0, 1), None, id="no replica would remain"),
        pytest.param(
            (0, 1), (), (0, 1), (2,), None, id="no replica would remain, another broker is in the ISR"
        ),
        pytest.param(
            (3, 2, 1), (3,), (1,), (3, 1), ((3, 2), (3,)), id="as many added as removed: others may lag"
        ),
        pytest.param(
            (3, 4, 2, 1),
            (3, 4),
            (1,),
            (4, 3),
            ((3, 4, 2), (4, 3)),
            id="more added than removed: others may lag",
        ),
        pytest.param(
            (3, 2, 1, 0), (3,), (1, 0), (3, 1), None, id="fewer added than removed: another replica lags"
        ),
        pytest.param(
            (3, 2, 1, 0),
            (3,),
            (1, 0),
            (2, 3, 1),
            ((3, 2), (2, 3)),
            id="fewer added than removed: all are in sync",
        ),
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
