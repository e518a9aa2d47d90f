"""Clusters that tests share. Each one a session, started when first asked for; a test leaves it as it found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.cluster import Cluster
from tests.kafka.node import Kind

# Long enough for a JVM on a busy machine to miss no heartbeat, short enough to wait for its end.
SESSION_TIMEOUT_MS = 5000


@pytest.fixture(scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    """Whose controller: kraftd's, or Apache Kafka's with --controller=apache."""
    chosen: Kind = request.config.getoption("--controller")
    return chosen


@pytest.fixture(scope="session")
def three_brokers(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller of a dynamic quorum and brokers 1, 2 and 3."""
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
    with cluster:
        cluster.start_controller()
        cluster.start_brokers(1, 2, 3)
        yield cluster


@pytest.fixture(scope="session")
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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the last lines of every node's log."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for cluster in Cluster.open_clusters:
            for node in cluster.nodes:
                report.sections.append((f"{node!r}: {node.log}", node.log_tail()))
