"""Two of three controllers are lost for good; `kraftd quorum recover` on the third, with brokers attached."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import SESSION_TIMEOUT_MS
from testkit.node import Controller
from testkit.process import HOST
from testkit.quorum import Quorum
from tests.kafka.recovery.disasters import (
    kraftd,
    lose,
    make_only_static_voter,
    read,
    recover,
    start_without_metadata,
    write,
)

pytestmark = pytest.mark.kafka

QUICK = {"broker.session.timeout.ms": SESSION_TIMEOUT_MS}
HEARTBEATS = {"broker.heartbeat.interval.ms": 500}
AHEAD = "a replica is ahead of this quorum"


def three(home: Path, last: str = "kraftd", *, static: bool = False) -> Quorum:
    kinds = {100: "kraftd", 101: "kraftd", 102: last}
    return Quorum(
        home,
        kinds,  # type: ignore[arg-type]
        static=static,
        controller_properties=QUICK,
        broker_properties=HEARTBEATS,
    )


def comes_back(quorum: Quorum, survivor: Controller, topic: str) -> None:
    """Check that the survivor leads alone, and that the broker is unfenced and accepts a new topic."""
    survivor.start()
    survivor.wait_ready()
    assert quorum.wait_for_leader(after_epoch=1_000) == survivor.node_id
    assert quorum.voter_ids() == {survivor.node_id}
    quorum.wait_for_live_brokers(1)
    quorum.create_topic(topic)
    write(quorum, topic, b"first")
    assert read(quorum, topic, 1) == [b"first"]


@pytest.mark.parametrize(
    "static",
    [pytest.param(False, id="dynamic"), pytest.param(True, marks=pytest.mark.thorough, id="static")],
)
def test_a_broker_stays_up_while_the_last_controller_recovers(static: bool, tmp_path: Path) -> None:
    """The survivor had all records: the broker notices a new leader and nothing else."""
    with three(tmp_path, static=static) as quorum:
        quorum.start_controllers()
        (broker,) = quorum.start_brokers(1)
        quorum.create_topic("before")
        write(quorum, "before", b"one", b"two")
        survivor = quorum.controller
        lost = [node_id for node_id in quorum.controllers if node_id != survivor.node_id]
        copy = lose(quorum, lost)
        if static:
            make_only_static_voter(survivor)
        output = recover(quorum, survivor, copy)
        assert f"Controller {survivor.node_id} is the only voter" in output
        comes_back(quorum, survivor, "after")
        assert broker.alive and "Encountered fatal fault" not in broker.log_text()
        assert AHEAD not in survivor.log_text()
        assert read(quorum, "before", 2) == [b"one", b"two"]
        if not static:
            newcomer = quorum.add_observer(103, "kraftd")
            quorum.wait_until_observer_is_level(103)
            address = ("--bootstrap", survivor.address)
            kraftd("quorum", "add-controller", *address, "--config", newcomer.properties_file)
            quorum.wait_for_voters(survivor.node_id, 103)
        epoch, voters = quorum.epoch(), quorum.voter_ids()
        old = quorum.controllers[lost[0]]
        shutil.move(copy, old.data)
        old.start()  # on its old directory, though it is no voter any more
        quorum.wait_until_observer_is_level(old.node_id)
        assert (quorum.epoch(), quorum.voter_ids()) == (epoch, voters)


@pytest.mark.thorough
def test_brokers_ahead_of_the_survivor_are_reported_and_come_back(tmp_path: Path) -> None:
    """The survivor, of Apache Kafka, missed the last topics, which a broker has applied."""
    with three(tmp_path, "apache") as quorum:
        quorum.start_controllers()
        (broker,) = quorum.start_brokers(1)
        quorum.create_topic("before")
        write(quorum, "before", b"one", b"two")
        survivor = quorum.controllers[102]
        survivor.kill()
        quorum.wait_for_leader()
        create(quorum, "missed")
        quorum.wait_until(lambda: quorum.leaders_by(1, "missed"), "the broker knows the topic")
        copy = lose(quorum, (100, 101))
        output = recover(quorum, survivor, copy, broker.data)
        for path in (copy, broker.data):
            assert f"{path} ends at offset" in output
        assert output.count("Its log is AHEAD of this one") == 2
        survivor.kind = "kraftd"
        survivor.start()
        survivor.wait_ready()
        quorum.wait_until(lambda: not broker.alive, "the broker ends")
        assert broker.exit_code == 1
        assert "which is below the current high watermark" in broker.log_text()
        survivor.wait_for_log(AHEAD)
        [line] = [line for line in survivor.log_text().splitlines() if AHEAD in line]
        assert '"from_node":1,' in line
        survivor.kill()
        survivor.kind = "apache"
        survivor.start()
        survivor.wait_ready()
        start_without_metadata(broker)
        quorum.wait_for_live_brokers(1)
        quorum.create_topic("after")
        assert quorum.voter_ids() == {102}
        assert {"before", "after"} <= set(quorum.metadata().topics)
        assert "missed" not in quorum.metadata().topics
        assert [path for path in broker.data.glob("missed-0.*") if path.name.endswith("-stray")]
        assert read(quorum, "before", 2) == [b"one", b"two"]


@pytest.mark.thorough
def test_a_brokers_copy_of_the_log_restores_records_the_survivor_missed(tmp_path: Path) -> None:
    with three(tmp_path) as quorum:
        quorum.start_controllers()
        (broker,) = quorum.start_brokers(1)
        survivor = quorum.controllers[102]
        survivor.kill()
        quorum.wait_for_leader()
        create(quorum, "missed")
        quorum.wait_until(lambda: quorum.leaders_by(1, "missed"), "the broker knows the topic")
        lose(quorum, (100, 101))
        broker.freeze()
        survivor.metadata_dir.rename(survivor.home / "before")
        shutil.copytree(broker.data / "__cluster_metadata-0", survivor.metadata_dir)
        broker.thaw()
        recover(quorum, survivor)
        comes_back(quorum, survivor, "after")
        assert broker.alive
        assert {"missed", "after"} <= set(quorum.metadata().topics)


def create(quorum: Quorum, name: str) -> None:
    """Create a topic at the active controller, without regard to brokers."""
    with Client(HOST, quorum.controller.port) as client:
        answer = client.call(CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms=5000), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE
