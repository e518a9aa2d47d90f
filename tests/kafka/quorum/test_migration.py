"""Follows docs/migration.md: a quorum of Apache Kafka's controllers becomes one of kraftd, and back.

Meanwhile clients of stock brokers create topics, write and read; none of their requests may fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftd.types import uuid_text
from testkit.cluster import status_fields
from testkit.node import Kind
from testkit.process import wait_until
from testkit.quorum import Quorum
from tests.kafka.quorum.clients import Clients
from tests.kafka.quorum.logged_errors import assert_nothing_new
from tests.kafka.quorum.migration import Machine, commands

pytestmark = pytest.mark.kafka

IDS = (100, 101, 102)
NEW_IDS = (200, 201, 202)
BROKERS = (1, 2)


@contextmanager
def served(quorum: Quorum) -> Iterator[Clients]:
    """Run clients during the block; afterwards none of them has failed."""
    quorum.start_brokers(*BROKERS)
    with Clients(quorum) as clients:
        clients.wait_for_more()
        yield clients
        clients.wait_for_more()
    assert clients.failures == []


def followers_first(quorum: Quorum) -> list[int]:
    leader = quorum.wait_for_leader()
    return sorted(IDS, key=lambda one: one == leader)


@pytest.mark.parametrize(
    "static",
    [pytest.param(False, id="dynamic"), pytest.param(True, marks=pytest.mark.thorough, id="static")],
)
def test_a_quorum_moves_to_kraftd_and_back_voter_by_voter(static: bool, kind: Kind, tmp_path: Path) -> None:
    status, stop_kafka, start_kraftd, replication = commands("In place, one controller after the other")
    stop_kraftd, start_kafka = commands("Back")
    steps: tuple[tuple[Kind, str, str], ...] = (
        ("kraftd", stop_kafka, start_kraftd),
        ("apache", stop_kraftd, start_kafka),
    )
    if kind == "apache":  # a restart of Kafka's own controllers, for comparison
        steps = (("apache", stop_kafka, start_kafka),)
    with Quorum(tmp_path, dict.fromkeys(IDS, "apache"), static=static) as quorum:
        machines = {node_id: Machine(one) for node_id, one in quorum.controllers.items()}
        quorum.start_controllers()
        with served(quorum) as clients:
            for new_kind, stop, start in steps:
                for node_id in followers_first(quorum):
                    machine, leader = machines[node_id], quorum.controllers[quorum.wait_for_leader()]
                    values = {"HOST:PORT": leader.address}
                    if new_kind == "kraftd":
                        assert status_fields(machine.run(status, values))["LeaderId"] == str(leader.node_id)
                    machine.stop(stop)
                    machine.start(start, new_kind)
                    quorum.wait_for_voters(*IDS)
                    values = {"HOST:PORT": machine.controller.address}
                    wait_until(
                        lambda machine=machine, values=values: all_level(machine.run(replication, values)),
                        f"{node_id} has caught up",
                    )
                    clients.wait_for_more()
        quorum.stop_all()
        assert quorum.assert_equal_logs() > 100
        assert_nothing_new(quorum.nodes)


@pytest.mark.thorough
def test_a_quorum_moves_to_new_machines_with_kraftd(tmp_path: Path) -> None:
    form, start, add, remove = commands("By way of new machines")
    with Quorum(tmp_path, dict.fromkeys(IDS, "apache")) as quorum:
        quorum.start_controllers()
        with served(quorum) as clients:
            for new, old in zip(NEW_IDS, followers_first(quorum), strict=True):
                controller = quorum.plan_observer(new, "kraftd")
                machine = Machine(controller, "new.properties")
                known = {
                    "HOST:PORT": quorum.controllers[quorum.wait_for_leader()].address,
                    "CLUSTER_ID": quorum.cluster_id,
                    "ID": str(old),
                    "DIRECTORY_ID": directory_id(quorum, old),
                }
                machine.run(form, known)
                machine.start(start, "kraftd")
                quorum.wait_until_observer_is_level(new)
                machine.run(add, known)
                if new == NEW_IDS[-1]:
                    restart_brokers(quorum, clients)
                machine.run(remove, {**known, "HOST:PORT": controller.address})
                wait_until(lambda old=old: old not in quorum.voter_ids(), f"{old} does not vote")
                quorum.controllers[old].stop()
                clients.wait_for_more()
            assert quorum.voter_ids() == set(NEW_IDS)
            epoch, leader = quorum.epoch(), quorum.controller
            leader.stop()
            assert quorum.wait_for_leader(after_epoch=epoch) in NEW_IDS
            clients.wait_for_more()
        quorum.stop_all()
        assert_nothing_new(quorum.nodes)


def restart_brokers(quorum: Quorum, clients: Clients) -> None:
    """Restart the brokers one after the other, with the new addresses in their files."""
    quorum.set_brokers_bootstrap(*NEW_IDS)
    for broker in quorum.brokers.values():
        broker.stop()
        broker.start()
        broker.wait_ready()
        clients.wait_for_more()


def all_level(replication: str) -> bool:
    """Return whether the table shows a lag of 0 for all voters."""
    rows = [line.split() for line in replication.splitlines()[1:]]
    lags = [row[3] for row in rows if row[-1] in ("Leader", "Follower")]
    return len(lags) == len(IDS) and set(lags) == {"0"}


def directory_id(quorum: Quorum, node_id: int) -> str:
    described = quorum.described()
    assert described is not None
    [voter] = [one for one in described.current_voters if one.replica_id == node_id]
    return uuid_text(voter.replica_directory_id)
