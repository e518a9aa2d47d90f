"""kraft.version and metadata.version of quorums in which Apache Kafka's controllers vote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testkit.node import Kind
from testkit.quorum import Quorum
from tests.kafka.quorum.images import SNAPSHOTS_OFTEN, assert_equal_snapshots
from tests.kafka.recovery.disasters import kraftd

pytestmark = pytest.mark.kafka

APACHE: tuple[Kind, ...] = ("apache", "apache", "apache")
MIXED: tuple[Kind, ...] = ("kraftd", "apache", "apache")
FATAL = "ProcessTerminatingFaultHandler"


def bootstrap(quorum: Quorum) -> tuple[str, str]:
    return "--bootstrap", ",".join(one.address for one in quorum.controllers.values())


def restart(quorum: Quorum, *ids: int) -> None:
    """Restart controllers one after the other, each once the one before has caught up."""
    for node_id in ids:
        quorum.controllers[node_id].stop()
        quorum.start_controllers(node_id)
        quorum.wait_for_voters(*quorum.controllers)


@pytest.mark.parametrize(
    "kinds", [pytest.param(APACHE, marks=pytest.mark.thorough), MIXED], ids=["apache", "mixed"]
)
def test_kafkas_controllers_are_made_dynamic_and_accept_another_voter(
    kinds: tuple[Kind, ...], tmp_path: Path
) -> None:
    """Immediately after an election, the leader does not know its voters' directories yet."""
    with Quorum(tmp_path, dict(zip((100, 101, 102), kinds, strict=True)), static=True) as quorum:
        quorum.start_controllers()
        quorum.wait_for_voters(100, 101, 102)
        address = bootstrap(quorum)
        files = [word for one in quorum.controllers.values() for word in ("-c", one.properties_file)]
        output = kraftd("quorum", "make-dynamic", *address, "--dry-run", *files)
        assert output.count("leave it until the quorum is dynamic") == len(kinds)
        assert "The quorum is dynamic" in kraftd("quorum", "make-dynamic", *address)
        described = quorum.described()
        assert described is not None
        assert len({one.replica_directory_id for one in described.current_voters} - {bytes(16)}) == len(kinds)
        quorum.become_dynamic()
        restart(quorum, 100, 101, 102)
        again = kraftd("quorum", "make-dynamic", *address, *files)
        assert "dynamic already" in again and "still has" not in again
        added = quorum.add_observer(103, "kraftd")
        quorum.wait_until_observer_is_level(103)
        kraftd("quorum", "add-controller", *address, "--config", added.properties_file)
        quorum.wait_for_voters(100, 101, 102, 103)


@pytest.mark.thorough
def test_a_standby_of_kafkas_survives_a_downgrade_that_kafka_would_refuse(tmp_path: Path) -> None:
    with Quorum(
        tmp_path,
        {100: "kraftd", 101: "kraftd", 102: "apache"},
        controller_properties={**SNAPSHOTS_OFTEN, "metadata.log.max.record.bytes.between.snapshots": 1_000},
    ) as quorum:
        quorum.start_controllers()
        quorum.make_lead(100)
        address = bootstrap(quorum)
        for level, name in ((29, "4.2"), (25, "4.0")):
            output = kraftd("features", "downgrade", *address, "--feature", f"metadata.version={name}")
            assert f"metadata.version is now {level}" in output
            restart(quorum, 102)
        standby = quorum.controllers[102]
        quorum.make_lead(102)
        levels = json.loads(kraftd("features", "describe", *address, "--json"))
        assert levels["metadata.version"]["finalized"] == 25
        assert "is now 30" in kraftd("features", "upgrade", *address, "--feature", "metadata.version=4.3")
        refused = kraftd("features", "downgrade", *address, "-f", "metadata.version=4.2", code=1)
        assert "INVALID_UPDATE_VERSION" in refused
        quorum.wait_for_voters(100, 101, 102)
        assert FATAL not in standby.log.read_text()
        quorum.stop_all()
        assert assert_equal_snapshots(quorum) > 0
