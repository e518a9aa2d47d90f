"""Which controller the tests with real brokers run against, and the logs of a failed one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.cluster import Cluster
from testkit.node import Kind
from testkit.quorum import Quorum
from tests.kafka.quorum.logged_errors import RECORDING, record


def _record_apache(quorum: Quorum) -> None:
    if all(one.kind == "apache" for one in quorum.controllers.values()):
        record(quorum.nodes)


if RECORDING:
    Quorum.before_close = _record_apache


@pytest.fixture(scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    """The kind of controllers: kraftd's, or Apache Kafka's with --controller=apache."""
    chosen: Kind = request.config.getoption("--controller")
    return chosen


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the last lines of every node's log."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for cluster in Cluster.open_clusters:
            for node in cluster.nodes:
                report.sections.append((f"{node!r}: {node.log}", node.log_tail()))
