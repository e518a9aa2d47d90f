"""What a test run needs from its machine, and its report of the tests that it could not run.

Tests marked ``kafka`` need Java and Apache Kafka's jars. Those marked ``container`` need buildah and podman,
``compiler`` a C compiler with sanitizers, ``browser`` Chromium and its driver, ``promtool`` Prometheus' tool.
Where something is missing they are skipped and one line of the summary says so; with CI=true that fails.

Tests marked ``thorough`` find little that others do not, or take minutes: only `make thorough` runs them.

With pytest-xdist (``-n``) a folder under ``tests/kafka`` goes to one worker whole: its tests share a cluster.
So does ``tests/container``, whose tests share an image.
"""

from __future__ import annotations

import gc
import os
import shutil
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from testkit.fetch import FetchError, kafka_libs
from testkit.java import JavaMissing, find_java
from testkit.process import let_children_heed_signals
from tests.fuzzing import sanitized

GC_ALLOCATIONS = 100_000
_NOT_RUN = "not run: "
# A command that a test runs in this process withholds permissions from others, and would do so from every
# later file: a container's user could not read its mounted configuration.
_UMASK = os.umask(0o022)
os.umask(_UMASK)
_NEEDS = ("kafka", "container", "compiler", "browser", "promtool")
_LONG = ("kafka", "container", "compiler")
_BY_FILE = ("kafka", "container")  # the Makefile runs the files that name them
_SHARED = ("tests/kafka/", "tests/container/")
# The folders that keep one worker for minutes, longest first.
_LONGEST = (
    "tests/kafka/quorum/",
    "tests/kafka/one_broker/",
    "tests/kafka/snapshots/",
    "tests/kafka/three_brokers/",
    "tests/kafka/secured/",
    "tests/container/",
)


let_children_heed_signals()
settings.register_profile("no test is timed", deadline=None)
settings.load_profile("no test is timed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the golden output of scripts and stories")
    parser.addoption("--thorough", action="store_true", help="run the tests marked thorough as well")
    parser.addoption(
        "--controller",
        choices=["kraftd", "apache"],
        default="kraftd",
        help="whose controller the tests with real brokers run against; apache shows what the oracle does",
    )


@cache
def missing_for(marker: str) -> str | None:
    """What this machine lacks for tests with this marker; None if nothing."""
    if marker == "kafka":
        try:
            find_java()
            kafka_libs()
        except (JavaMissing, FetchError) as error:
            return str(error).partition("\n")[0]
    elif marker == "container":
        lacking = [tool for tool in ("buildah", "podman", "runc") if shutil.which(tool) is None]
        if lacking:
            return f"no {', '.join(lacking)} on the PATH"
        if os.geteuid() != 0:
            return "building the stand-in base image needs root"
    elif marker == "compiler":
        return sanitized.lacking()
    elif marker == "browser":
        lacking = [tool for tool in ("chromium", "chromedriver") if shutil.which(tool) is None]
        return f"no {', '.join(lacking)} on the PATH" if lacking else None
    elif marker == "promtool" and shutil.which("promtool") is None:
        return "no promtool on the PATH"
    return None


def pytest_collection_finish() -> None:
    """Leave what the collection made out of garbage collections, and collect more rarely.

    Collections took a quarter of the CPU of tests without processes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_ALLOCATIONS, 50, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Give each test, and its fixtures, the umask that the run began with."""
    os.umask(_UMASK)


def _place(item: pytest.Item) -> tuple[int, bool]:
    """The place of a test in a run: long ones first, so that no worker is left alone with them at the end."""
    rank = next(
        (rank for rank, folder in enumerate(_LONGEST) if item.nodeid.startswith(folder)), len(_LONGEST)
    )
    return rank, not any(map(item.get_closest_marker, _LONG))


@cache
def _text(test_file: Path) -> str:
    return test_file.read_text()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("thorough"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
    items.sort(key=_place)
    for item in items:
        for marker in _BY_FILE:
            if item.get_closest_marker(marker) and f"mark.{marker}" not in _text(item.path):
                raise pytest.UsageError(
                    f"{item.path}: name mark.{marker} here, as make test selects files by it"
                )
        for marker in _NEEDS:
            if item.get_closest_marker(marker) and (lack := missing_for(marker)):
                item.add_marker(pytest.mark.skip(reason=_NOT_RUN + lack))


def _not_run(config: pytest.Config) -> dict[str, list[pytest.TestReport]]:
    """The reports of tests that this machine could not run, by marker."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    return {
        marker: [
            report for report in skipped if marker in report.keywords and _NOT_RUN in str(report.longrepr)
        ]
        for marker in _NEEDS
    }


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") == "true" and any(_not_run(session.config).values()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for marker, reports in _not_run(config).items():
        if reports:
            verdict = "a failure, as CI=true" if os.environ.get("CI") == "true" else "skipped"
            line = f"{len(reports)} {marker} tests {_NOT_RUN}{missing_for(marker)} ({verdict})"
            terminalreporter.write_line(line, yellow=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class SharedClusters(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file.rpartition("/")[0] if any(folder in file for folder in _SHARED) else file

    config.option.loadscopereorder = False
    return SharedClusters(config, log)
