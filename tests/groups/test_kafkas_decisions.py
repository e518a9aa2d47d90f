"""Decisions of Kafka's group coordinator, in its own tests and on random requests, are the same in kraftd.

``GroupDecisions`` runs those tests. It writes down what the manager of groups was asked, which records were
in force, and what assignors and random numbers gave it. Then it writes what was answered and scheduled.
``RandomGroups`` asks for random things instead.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kraftd.groups.share import describing, target
from tests.groups.decisions import DECISIONS, Asked, answer_of, appended, decision_differs
from tests.groups.kafkas_world import Columns, Otherwise, World
from tests.kafkas_tests.agent import lines_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PACKAGE = "org.apache.kafka.coordinator.group"
CLASSES = ("GroupMetadataManagerTest", "OffsetMetadataManagerTest")
RANDOM_JAVA, DECISIONS_JAVA = (
    Path(__file__).with_name("java") / name for name in ("RandomGroups.java", "GroupDecisions.java")
)
FIRST_SEED, WORLDS = 1, 20
LEAST = 6_000  # decisions, answers, deadlines and appended records
STREAMS_GROUP = "getOrMaybeCreatePersistedStreamsGroup"
STREAMS = "streamsGroupHeartbeat"  # of a protocol that kraftd does not serve: such a test ends here
CLOCK = "docs/divergence.md: A clock that goes back"
NO_MEMBERS = "it has an empty group with members"
OTHERWISE = {
    "testShareGroupHeartbeatInitializeOnPartitionUpdate": "its change of the metadata is a mock",
    "testRebalanceCompletesBeforeMemberJoins": "two deadlines are due in the same millisecond",
    "testHeartbeatEmptyGroup": NO_MEMBERS,
    "testStaticMemberReJoinWithIllegalStateAsUnknownMember": NO_MEMBERS,
    "testClassicGroupJoinWithEmptyStreamsGroup": "the topology of a streams group goes with it",
    "testShareGroupHeartbeatPersisterRequestWithInitializing": "its deadlines have a clock of their own",
    "testShareGroupHeartbeatDoesNotBumpGroupEpochDuringAssignmentDelay": CLOCK,
    "testPartitionAssignorExceptionOnRegularHeartbeat": "members stay if an assignor of one's own fails",
    "testShareGroupDescribeNoErrors": "its assignor has a name of its own",
}
"""Tests with a decision that is not the same, and why."""


class Comparison:
    """Kafka's lines beside what kraftd does: how much was compared, and what differs, by Kafka's test."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[tuple[str, str]] = []
        self._worlds: dict[str, World] = {}
        self._world: World | None = None
        self._test = ""
        self._is_over = False  # with this test, after a difference
        self._asked: Asked | None = None
        self._kinds: dict[str, str] = {}
        self._answered: list[tuple[str, str]] = []

    def take(self, kind: str, columns: Columns) -> None:
        """Take one line."""
        if kind == "test":
            self._test, self._is_over, self._world, self._answered = columns[0].split(".")[1], False, None, []
        elif kind == "ended":
            assert columns[0] == "SUCCESSFUL", self._test
            self._settle_answers()
        elif not self._is_over:
            try:
                self._take(kind, columns)
            except Otherwise as otherwise:
                self._differ(kind, str(otherwise), columns)
            except Exception as error:
                self._differ(kind, repr(error), columns)

    def _take(self, kind: str, columns: Columns) -> None:
        if kind == "world":
            self._settle_answers()
            self._world = self._worlds[columns[0]] = World(columns[1:])
            return
        world = self._world
        assert world is not None
        if kind == "image":
            world.known.take(*columns[1:])
        elif kind == "configs":
            text = columns[2].strip("{}")
            world.known.configs[columns[1]] = dict(one.split("=", 1) for one in text.split(", ") if one)
        elif kind == "replay":
            world.replay(columns[1], columns[3])
        elif kind == "offsets":
            world.limit_offsets(*columns[1:])
        elif kind == "offset":
            world.replay_offset(*columns[1:])
        elif kind == "marker":
            world.end_transaction(*columns[1:])
        elif kind == "touch":
            self._is_over = columns[2] == STREAMS_GROUP
            if not self._is_over:
                world.touch(columns[1], columns[2], columns[3], columns[4:])
        elif kind == "settled":
            world.settle(columns[1])
        elif kind == "timers":
            self._settle_answers()
            self._note(kind, sorted(filter(None, columns[1:])), world.timers(), columns)
        elif kind == "call":
            self._asked = Asked(columns[1], columns[2], int(columns[3]), columns[4:])
            self._kinds[columns[1]] = columns[2]
            self._is_over = columns[2] == STREAMS
            world.uuids.clear()
            world.prepared.rows.clear()
        elif kind == "uuid":
            world.uuids.append(columns[0])
        elif kind == "seen":
            world.denied = set(columns[0].split(",")) - set(columns[1].split(","))
        elif kind == "assigned":
            world.prepared.rows.append(columns)
        elif kind == "answered":
            named = DECISIONS[self._kinds[columns[0]]][1]
            self._answered.append((columns[0], answer_of(named, columns[1])))
        elif kind == "appended":
            self._settle_answers()
            self._note(kind, None, appended(world, *columns), columns)
        elif self._asked is not None:
            asked, self._asked = self._asked, None
            self._note(asked.name, None, decision_differs(world, asked, [kind, *columns]), [str(asked)])

    def _settle_answers(self) -> None:
        """What was answered since the last step is the same."""
        if self._world is None or self._is_over:
            return
        own, kafkas = sorted(self._world.answers), sorted(self._answered)
        own = [one for one in own if one[0] != "a test's"]
        self._world.answers, self._answered = [], []
        self._note("answers", kafkas, own, [])

    def _note(self, kind: str, expected: object, own: object, columns: Columns) -> None:
        self.counts[kind] += 1
        if own != expected:
            self._differ(kind, f"{own}\n    Kafka's: {expected}", columns)

    def _differ(self, kind: str, text: str, columns: Columns) -> None:
        self._is_over = True
        self.differences.append((self._test, f"{kind} {columns}\n    kraftd: {text}"))


def compared_to(monkeypatch: pytest.MonkeyPatch, lines: list[Columns]) -> Comparison:
    compared = Comparison()
    monkeypatch.setattr(
        target,
        "assign_simply",
        lambda *asked: compared._world.prepared(*asked),  # type: ignore[union-attr]
    )
    for kind, *columns in lines:
        compared.take(kind, columns)
    return compared


def test_decisions_of_kafkas_own_tests_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describing, "SIMPLE", "share")  # the tests have an assignor of their own
    tests = [f"{PACKAGE}.{one}" for one in CLASSES]
    compared = compared_to(monkeypatch, lines_of(f"{PACKAGE}.GroupDecisions", tests, DECISIONS_JAVA))
    differences = [f"{test}: {text}" for test, text in compared.differences if test not in OTHERWISE]
    assert not differences, "\n".join(differences[:5])
    assert {test for test, _ in compared.differences} == set(OTHERWISE)
    assert compared.counts.total() >= LEAST, compared.counts


def test_decisions_on_random_requests_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of members of all protocols, while groups change theirs, topics change, and appends fail."""
    numbers = [str(FIRST_SEED), str(WORLDS)]
    lines = lines_of(f"{PACKAGE}.RandomGroups", numbers, RANDOM_JAVA, DECISIONS_JAVA)
    compared = compared_to(monkeypatch, lines)
    assert not compared.differences, "\n".join(map(str, compared.differences[:5]))
    assert compared.counts.total() >= 300 * WORLDS, compared.counts
