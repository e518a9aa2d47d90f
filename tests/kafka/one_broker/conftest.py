"""The cluster that this folder's tests share; after each test, stopped nodes are started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.cluster import SESSION_TIMEOUT_MS, Cluster
from testkit.node import Kind


@pytest.fixture(scope="package")
def one_broker(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller of a static quorum (controller.quorum.voters) and broker 1."""
    cluster = Cluster(
        tmp_path_factory.mktemp("one"),
        kind,
        static=True,
        controller_properties={"broker.session.timeout.ms": SESSION_TIMEOUT_MS},
        broker_properties={"broker.heartbeat.interval.ms": 500},
    )
    with cluster:
        cluster.start_controller()
        cluster.start_brokers(1)
        yield cluster


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "one_broker" in request.fixturenames:
        request.getfixturevalue("one_broker").heal()
