"""What Kafka's own tests of its storage ask for is answered alike by kraftd.

``KafkasStorage`` runs those tests. It writes down each batch that Kafka validates, and each step of the
state of a partition's producers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kafkas_tests.agent import Columns, lines_of
from tests.kafkas_tests.producers import Managers
from tests.kafkas_tests.validation import validation_differs

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PACKAGE = "org.apache.kafka.storage.internals.log"
SOURCES = [Path(__file__).with_name("java") / name for name in ("KafkasStorage.java", "KafkasLogs.java")]
CLASSES = ("LogValidatorTest", "ProducerStateManagerTest")
LEAST = {"validate": 190, "data": 100, "marker": 35, "op": 380}
OTHERWISE: dict[str, str] = {}
"""Tests with a step that is not the same, and why."""


class Comparison:
    """Kafka's lines beside what kraftd does: how much was compared, and what differs, by Kafka's test."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[tuple[str, str]] = []
        self._managers = Managers()
        self._test = ""
        self._asked: Columns = []

    def take(self, kind: str, columns: Columns) -> None:
        """Take one line."""
        if kind == "test":
            self._test = columns[0]
        elif kind == "ended":
            assert columns[0] == "SUCCESSFUL", (self._test, columns[1])
        elif kind == "validate":
            self._asked = columns
        elif kind in ("valid", "refused"):
            self._note("validate", validation_differs(self._asked, [kind, *columns]), self._asked + columns)
        elif kind == "manager":
            self._managers.made(columns)
        elif kind == "info":
            self._managers.begun(columns)
        elif kind == "op":
            self._note(kind, self._managers.operated(columns), columns)
        else:
            self._note(kind, self._managers.appended(kind, columns), columns)

    def _note(self, kind: str, difference: str | None, columns: Columns) -> None:
        self.counts[kind] += 1
        if difference is not None:
            self.differences.append((self._test, f"{kind} {columns}\n    kraftd: {difference}"))


def storage_lines(classes: Sequence[str]) -> list[Columns]:
    """What Kafka's storage is asked for while classes of tests run."""
    return lines_of(f"{PACKAGE}.KafkasStorage", classes, *SOURCES)


def test_storage_does_what_kafkas_own_tests_ask_for() -> None:
    compared = Comparison()
    for kind, *columns in storage_lines([f"{PACKAGE}.{name}" for name in CLASSES]):
        compared.take(kind, columns)
    differences = [f"{test}: {text}" for test, text in compared.differences if test not in OTHERWISE]
    assert not differences, "\n".join(differences[:5])
    assert {test for test, _ in compared.differences} == set(OTHERWISE)
    assert all(compared.counts[kind] >= least for kind, least in LEAST.items()), compared.counts
