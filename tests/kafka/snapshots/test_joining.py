"""A controller that joins late catches up by snapshot, whichever kind leads and whichever joins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.cluster import SESSION_TIMEOUT_MS
from testkit.node import Kind
from testkit.process import wait_until
from testkit.quorum import Quorum
from tests.kafka.snapshots.compacting import COMPACTING, fill, snapshots, wait_for_compaction

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", params=["kraftd", pytest.param("apache", marks=pytest.mark.thorough)])
def led(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """A dynamic quorum of one of that kind whose log begins with a snapshot, and a broker."""
    quorum = Quorum(
        tmp_path_factory.mktemp("led"),
        {100: request.param},
        controller_properties={"broker.session.timeout.ms": SESSION_TIMEOUT_MS, **COMPACTING},
        broker_properties={"broker.heartbeat.interval.ms": 500},
    )
    with quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        fill(quorum, "early", 25)
        wait_for_compaction(quorum.controllers[100].metadata_dir)
        yield quorum


@pytest.mark.parametrize(("node_id", "joiner"), [(101, "kraftd"), (102, "apache")])
def test_a_controller_that_joins_late_loads_a_snapshot_and_follows(
    led: Quorum, node_id: int, joiner: Kind
) -> None:
    if led.controllers[100].kind == joiner == "apache":
        pytest.skip("Kafka's among themselves")
    joined = led.add_observer(node_id, joiner)
    directory = joined.metadata_dir
    wait_for_compaction(directory)
    before = snapshots(directory)[-1]
    fill(led, f"after-{node_id}", 10)
    wait_until(lambda: snapshots(directory)[-1] > before, f"{joined!r} makes its own", 120)
