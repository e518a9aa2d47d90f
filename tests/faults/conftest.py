"""The quorums of the fault tests, and the logs of a failed one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.cluster import Cluster
from tests.faults.quorum import FaultyQuorum


@pytest.fixture(scope="module", params=[False, True], ids=["dynamic", "static"])
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyQuorum]:
    """Three voters behind the proxy, shared by the tests of a file; each test leaves it healed."""
    with FaultyQuorum(tmp_path_factory.mktemp("three"), static=request.param) as quorum:
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for what this machine does not permit."""
    skipped = [one for one in terminalreporter.stats.get("skipped", []) if "tests/faults/" in one.nodeid]
    if skipped:
        reasons = {str(one.longrepr[2]).partition("not run: ")[2] for one in skipped}
        line = f"{len(skipped)} tests of faults not run: {'; '.join(sorted(reasons))}"
        terminalreporter.write_line(line, yellow=True)
