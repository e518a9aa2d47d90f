"""The quorums of the fault tests, and the logs of a failed one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.quorum import FaultyQuorum
from tests.kafka.cluster import Cluster


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyQuorum]:
    """Three voters behind the proxy, shared by the tests of a file; each test leaves it healed."""
    with FaultyQuorum(tmp_path_factory.mktemp("three")) as quorum:
        quorum.start()
        yield quorum


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the last lines of every node's log."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for cluster in Cluster.open_clusters:
            for node in cluster.nodes:
                report.sections.append((f"{node!r}: {node.log}", node.log_tail()))
