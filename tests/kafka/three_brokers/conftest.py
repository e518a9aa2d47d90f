"""The cluster that this folder's tests share; after each test, stopped nodes are started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.cluster import SESSION_TIMEOUT_MS, Cluster
from testkit.node import Kind
from tests.faults.proxy import Proxy


@pytest.fixture(scope="package")
def proxy() -> Iterator[Proxy]:
    """The network between the brokers and the controller."""
    network = Proxy()
    yield network
    network.close()


@pytest.fixture(scope="package")
def three_brokers(kind: Kind, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller of a dynamic quorum and brokers 1, 2 and 3, which reach it through the proxy's door."""
    cluster = Cluster(
        tmp_path_factory.mktemp("three"),
        kind,
        controller_properties={"broker.session.timeout.ms": SESSION_TIMEOUT_MS},
        broker_properties={
            "broker.heartbeat.interval.ms": 500,
            "replica.lag.time.max.ms": 5000,
            "default.replication.factor": 3,
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "transaction.state.log.min.isr": 2,
        },
    )
    proxy.guard(cluster.controller)
    with cluster:
        cluster.start_controller()
        cluster.start_brokers(1, 2, 3)
        yield cluster


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "three_brokers" in request.fixturenames:
        request.getfixturevalue("proxy").heal()
        request.getfixturevalue("three_brokers").heal()
