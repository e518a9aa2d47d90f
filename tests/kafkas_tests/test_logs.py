"""Each step that Kafka's own tests ask of a log is the same in kraftd, with the state after it.

Once it is closed, its indexes hold the same.

A log begins with the files that Kafka's finds: torn ones, those of a crash, ones without indexes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.kafkas_tests.agent import Columns
from tests.kafkas_tests.epochs import epochs_differ
from tests.kafkas_tests.log_steps import Logs
from tests.kafkas_tests.test_storage import PACKAGE, storage_lines

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

OVERFLOW = "docs/divergence.md: A segment whose offsets are too far apart"
SPLIT = "the index of a segment that was split is empty in Kafka"
SNAPSHOT = "the test removes a snapshot that the log has written"
OTHERWISE = {
    "UnifiedLogTest.testLogFailsWhenInconsistentTopicIdSet": "a broker compares the topic id, not an opening",
    "UnifiedLogTest.testGetFirstBatchTimestampForSegments": "the test makes segments beside those of the log",
    "UnifiedLogTest.testTimeBasedLogRollJitter": "the jitter is drawn at random",
    "LogLoaderTest.testLogEndLessThanStartAfterReopen": SNAPSHOT,
    "LogLoaderTest.testFullTransactionIndexRecovery": "the test removes indexes of the log",
    "LogLoaderTest.testRecoveryAfterCrashDuringSplitPhase1": OVERFLOW,
    "LogLoaderTest.testRecoveryAfterCrashDuringSplitPhase2": OVERFLOW,
    "LogLoaderTest.testRecoveryAfterCrashDuringSplitPhase3": SPLIT,
    "LogLoaderTest.testRecoveryAfterCrashDuringSplitPhase4": SPLIT,
    "LogLoaderTest.testRecoveryAfterCrashDuringSplitPhase5": SPLIT,
    "LogLoaderTest.testRecoveryOfSegmentWithOffsetOverflow": OVERFLOW,
}
"""Tests with a step that is not the same, and why."""
UNCOMPARED = {"UnifiedLogTest.testReadCommittedWithConcurrentHighWatermarkUpdates"}  # of two threads


class LogComparison:
    """Kafka's lines beside what kraftd does: how many steps were compared, and what differs, by test."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[tuple[str, str]] = []
        self._logs = Logs()
        self._test = ""
        self._asked: Columns = []

    def take(self, kind: str, columns: Columns) -> None:
        """Take one line."""
        if kind == "test":
            self._test = columns[0]
        elif kind == "ended":
            assert columns[0] == "SUCCESSFUL", (self._test, columns[1])
        elif kind in ("create", "step"):
            self._logs.asked(kind, columns)
            self._asked = columns
        elif kind == "epochs":
            self._note(kind, epochs_differ(columns), columns)
        elif kind in ("done", "failed") and self._test not in UNCOMPARED:
            name, difference = self._logs.answered(kind, columns)
            self._note(name, difference, [*self._asked, *columns])

    def _note(self, name: str, difference: str | None, columns: Columns) -> None:
        self.counts[name] += 1
        if difference is not None:
            self.differences.append((self._test, f"{name} {columns}\n    kraftd: {difference}"))

    def check(self, otherwise: set[str], least: int) -> None:
        differences = [f"{test}: {text}" for test, text in self.differences if test not in otherwise]
        assert not differences, "\n".join(differences[:5])
        assert {test for test, _ in self.differences} == otherwise
        assert self.counts.total() - self.counts["unasked"] - self.counts["not followed"] >= least, (
            self.counts
        )


def compare(classes: Sequence[str], least: int) -> None:
    compared = LogComparison()
    for kind, *columns in storage_lines(classes):
        compared.take(kind, columns)
    ran = {name.rpartition(".")[2] for name in classes}
    compared.check({test for test in OTHERWISE if test.partition(".")[0] in ran}, least)


def test_logs_do_what_kafkas_own_tests_ask_for() -> None:
    epochs = "kafka.server.epoch.LeaderEpochFileCacheTest"
    compare([f"{PACKAGE}.UnifiedLogTest", "kafka.log.UnifiedLogTest", epochs], 4_450)


@pytest.mark.thorough
def test_logs_are_opened_as_in_kafkas_own_tests() -> None:
    compare(["kafka.log.LogLoaderTest"], 2_900)
