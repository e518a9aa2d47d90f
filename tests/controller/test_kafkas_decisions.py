"""Each decision that Kafka's own tests of its controller ask for is the same in kraftd.

``KafkasDecisions`` runs those tests and writes down what a manager was asked, which records were in force
and what it answered. The random numbers are Kafka's, so that replicas are placed on the same brokers.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kraftd.controller.configs import changes
from kraftd.controller.partitions.change import Assignment, ChangeRules, Election, partition_change
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.state import PartitionState
from kraftd.types import parse_uuid
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.controller.decisions import Columns, World, call_of, calls_differ
from tests.kafkas_tests.agent import lines_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

CLASSES = ("ReplicationControlManagerTest", "PartitionChangeBuilderTest", "ClusterControlManagerTest")
SOURCES = [Path(__file__).with_name("java") / name for name in ("KafkasDecisions.java", "Hex.java")]
LEAST = 2_500  # decisions, changes of partitions and replayed records of the three
POLICY = "its policy is a Java class"
PLACEMENT = "docs/divergence.md: New replicas after a failover"
OTHERWISE = {
    "ReplicationControlManagerTest.testCreateTopicsWithPolicy": POLICY,
    "ReplicationControlManagerTest.testCreateTopicsWithPolicyUnexpectedException": POLICY,
    "ReplicationControlManagerTest.testCreateTopicsISRInvariants": PLACEMENT,
    "ReplicationControlManagerTest.testCreatePartitionsISRInvariants": PLACEMENT,
    "ClusterControlManagerTest.testReRegistrationWithCleanShutdownDetection": "its partitions are a stub",
    "ClusterControlManagerTest.testRegistrationWithUnsupportedFeature": "its feature is one of Kafka's tests",
}
"""Tests with a decision that is not the same, and why."""


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one)


def places(text: str) -> dict[int, bytes]:
    named = (one.split("=", 1) for one in text.split(",") if one)
    return {int(replica): parse_uuid(place) for replica, place in named}


def change_differs(columns: Columns) -> str | None:
    """How kraftd's change of a partition differs from Kafka's; None if it does not."""
    replicas, isr, removing, adding, elr, last_elr, directories, leader, *asked_for = columns
    new_isr, new_replicas, new_removing, new_adding, unclean, election, min_isr, has_elr = asked_for[:8]
    recovery, level_text, new_places, may_lead, default_places, name, expected = asked_for[8:]
    leader_id, state = numbers(leader)
    partition = PartitionState(
        replicas=numbers(replicas),
        isr=numbers(isr),
        leader=leader_id,
        removing_replicas=numbers(removing),
        adding_replicas=numbers(adding),
        leader_recovery_state=state,
        directories=tuple(parse_uuid(one) for one in directories.split(",") if one),
        elr=numbers(elr),
        last_known_elr=numbers(last_elr),
    )
    level, leaders, default = int(level_text), numbers(may_lead), places(default_places)
    rules = ChangeRules(
        may_lead=lambda broker_id, _: broker_id in leaders,
        default_directory=lambda broker_id: default.get(broker_id, bytes(16)),
        elr=has_elr == "true",
        directories=mv.allows_directory_assignment(level),
        shrink_bumps_leader_epoch=mv.bumps_leader_epoch_on_isr_shrink(level),
        record_version=mv.partition_change_record_version(level),
    )
    assignment = Assignment(numbers(new_replicas), numbers(new_adding), numbers(new_removing))
    same = Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)
    now = dict(zip(partition.replicas, partition.directories, strict=True))
    moves = sorted(places(new_places).items() - now.items())
    if len(moves) > 1:
        return None  # kraftd moves one replica at a time
    topic_id, index = name.split(",")
    change = partition_change(
        rules,
        parse_uuid(topic_id),
        int(index),
        partition,
        int(min_isr),
        election=Election[election],
        isr=numbers(new_isr),
        assignment=None if assignment == same else assignment,
        recovery_state=int(recovery),
        directory=moves[0] if moves else None,
        unclean_shutdown=numbers(unclean)[0] if unclean else -1,
    )
    made = "none" if change is None else encode_record(VersionedRecord(change, rules.record_version)).hex()
    return None if made == expected else f"{change}"


class Comparison:
    """Kafka's lines beside what kraftd does: how much was compared, and what differs, by Kafka's test."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[tuple[str, str]] = []
        self._worlds: dict[str, World] = {}
        self._test = ""
        self._head: Columns = []
        self._draws: list[tuple[int, int]] = []

    def take(self, kind: str, columns: Columns) -> None:
        """Take one line."""
        if kind == "test":
            self._test = columns[0]
        elif kind == "ended":
            assert columns[0] == "SUCCESSFUL", self._test
        elif kind == "static":
            self._world(columns[0]).configure(columns[1], columns[2])
        elif kind == "replay":
            taken = self._world(columns[0]).takes(columns[1])
            self._note(kind, f"taken: {taken}" if taken != (columns[2] == "true") else None, columns)
        elif kind == "call":
            self._head, self._draws = [kind, *columns], []
        elif kind == "draw":
            self._draws.append((int(columns[0]), int(columns[1])))
        elif kind == "build":
            self._note(kind, change_differs(columns), columns)
        else:
            call = call_of(self._head, self._draws, [kind, *columns])
            self._note(call.name, calls_differ(self._world(self._head[1]), call), [str(call)])

    def _world(self, name: str) -> World:
        return self._worlds.setdefault(name, World())

    def _note(self, kind: str, difference: str | None, columns: Columns) -> None:
        self.counts[kind] += 1
        if difference is not None:
            self.differences.append((self._test, f"{kind} {columns}\n    kraftd: {difference}"))


def test_decisions_of_kafkas_own_tests_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "validate_resource", lambda *_: None)  # the tests have a schema of their own
    compared = Comparison()
    for kind, *columns in lines_of("org.apache.kafka.controller.KafkasDecisions", CLASSES, *SOURCES):
        compared.take(kind, columns)
    differences = [f"{test}: {text}" for test, text in compared.differences if test not in OTHERWISE]
    assert not differences, "\n".join(differences[:5])
    assert {test for test, _ in compared.differences} == set(OTHERWISE)
    assert compared.counts.total() >= LEAST, compared.counts
