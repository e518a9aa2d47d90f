"""Becoming the active controller, and resigning: the order of the steps, and the log lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller_node.deciding.activation import Leadership
from kraftd.controller_node.effects import ControllerActivated
from kraftd.raft.effects import LeadershipChanged
from kraftd.requests.effects import AuditLine, LogLine
from kraftd.requests.outbox import Outbox

NODE_ID, OTHER_ID, EPOCH, LOG_END, HIGH_WATERMARK = 100, 7, 5, 40, 38


class RecordedLeadership:
    """A leadership whose neighbours note each call, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.audited: list[Any] = []
        note = self.done.append
        self.refuses = False
        core: Any = SimpleNamespace(log_end_offset=LOG_END, high_watermark=HIGH_WATERMARK, kraft_version=1)
        context: Any = SimpleNamespace(
            kraft_version=0, image=SimpleNamespace(mark=lambda: note("mark the image"))
        )
        rights: Any = DecisionRights()
        following: Any = SimpleNamespace(
            replay=SimpleNamespace(complete=True), undo_to=lambda *arguments: note(("undo to", *arguments))
        )
        decisions: Any = SimpleNamespace(
            decide_alone=self._decide_alone,
            appends=SimpleNamespace(flush=self._flush, forget=lambda: note("forget gathered")),
            parked=SimpleNamespace(abandon=lambda: note("refuse parked")),
            long=SimpleNamespace(abandon=lambda: note("abandon the long one") or 39),
        )
        periodic: Any = SimpleNamespace(
            activate=lambda: note("start tasks"), deactivate=lambda: note("end tasks")
        )
        registration: Any = SimpleNamespace(
            write=lambda: note("write registration"),
            attempt=lambda: note("attempt"),
            check_for_duplicate=lambda: note("look for a duplicate"),
        )
        pending_events: Any = SimpleNamespace(forget=lambda: note("forget pending events"))
        identity: Any = SimpleNamespace(node_id=NODE_ID)
        self.core, self.context, self.decision_rights, self.following = core, context, rights, following
        self.outbox = Outbox()
        self.leadership = Leadership(
            identity,
            core,
            context,
            rights,
            following,
            decisions,
            periodic,
            registration,
            pending_events,
            self.outbox,
            (),
        )

    def _decide_alone(self, _: Any) -> None:
        self.done.append("first records")

    def _flush(self) -> None:
        self.done.append("flush")
        if self.refuses:
            self.decision_rights.active_epoch = None

    def change(self, leader_id: int | None, epoch: int = EPOCH) -> list[Any]:
        """Change the leader; return the effects, then the calls of neighbours."""
        self.done.clear()
        self.leadership.changed(LeadershipChanged(epoch, leader_id, leader_id == NODE_ID))
        return [*self._effects(), *self.done]

    def _effects(self) -> list[Any]:
        """The effects but for events of the audit stream, which go to `audited`."""
        taken = self.outbox.take()
        self.audited += [(one.event, one.fields) for one in taken if isinstance(one, AuditLine)]
        return [one for one in taken if not isinstance(one, AuditLine)]

    def catch_up(self) -> list[Any]:
        self.done.clear()
        self.leadership.caught_up()
        return [*self._effects(), *self.done]


class DecisionRights:
    stopping = False
    active_epoch: int | None = None

    @property
    def active(self) -> bool:
        return self.active_epoch is not None


BECOMES = ["mark the image", "first records", "flush", "write registration", "start tasks"]
STEPS_DOWN = [
    "abandon the long one",
    "forget gathered",
    ("undo to", HIGH_WATERMARK, 39),
    "end tasks",
    "forget pending events",
    "refuse parked",
]


def active_line(epoch: int = EPOCH) -> LogLine:
    return LogLine("info", "active controller", {"epoch": epoch, "node_id": NODE_ID, "next_offset": LOG_END})


def test_a_leader_whose_image_is_complete_becomes_active_at_once() -> None:
    harness = RecordedLeadership()
    assert harness.change(NODE_ID) == [active_line(), ControllerActivated(EPOCH), *BECOMES, "attempt"]
    assert harness.decision_rights.active_epoch == EPOCH
    assert harness.context.kraft_version == 1
    assert repr(harness.leadership) == "<Leadership, epoch none claimed, 1 leaders seen>"


def test_a_leader_that_reads_still_becomes_active_once_it_has_caught_up() -> None:
    harness = RecordedLeadership()
    harness.following.replay.complete = False
    assert harness.change(NODE_ID) == ["attempt"]
    assert repr(harness.leadership) == "<Leadership, epoch 5 claimed, 1 leaders seen>"
    harness.following.replay.complete = True
    assert harness.catch_up() == [
        active_line(),
        ControllerActivated(EPOCH),
        *BECOMES,
        "look for a duplicate",
        "attempt",
    ]
    assert harness.catch_up() == ["look for a duplicate", "attempt"]  # once


def test_a_leadership_that_is_lost_before_the_image_is_complete_is_not_claimed() -> None:
    harness = RecordedLeadership()
    harness.following.replay.complete = False
    harness.change(NODE_ID)
    harness.change(OTHER_ID, EPOCH + 1)
    assert harness.catch_up() == ["look for a duplicate", "attempt"]
    assert harness.decision_rights.active_epoch is None


def test_a_node_that_is_about_to_end_does_not_become_active() -> None:
    harness = RecordedLeadership()
    harness.decision_rights.stopping = True
    assert harness.change(NODE_ID) == ["attempt"]
    assert repr(harness.leadership) == "<Leadership, epoch 5 claimed, 1 leaders seen>"


def test_a_leadership_that_ends_with_its_first_records_starts_nothing() -> None:
    harness = RecordedLeadership()
    harness.refuses = True
    assert harness.change(NODE_ID) == [active_line(), "mark the image", "first records", "flush", "attempt"]


@pytest.mark.parametrize(
    ("leader_id", "text", "leader"), [(OTHER_ID, "leader is known", "7"), (None, "no leader", "nobody")]
)
def test_another_leader_or_none_is_logged(leader_id: int | None, text: str, leader: str) -> None:
    harness = RecordedLeadership()
    assert harness.change(leader_id) == [LogLine("info", text, {"leader": leader, "epoch": EPOCH}), "attempt"]
    assert harness.leadership.last_leader_id == leader_id
    assert harness.leadership.leaders_seen == (leader_id is not None)


def test_leaders_are_counted_and_the_last_one_is_remembered_through_an_election() -> None:
    harness = RecordedLeadership()
    for leader_id in (OTHER_ID, None, 8):
        harness.change(leader_id)
    assert (harness.leadership.leaders_seen, harness.leadership.last_leader_id) == (2, 8)
    harness.change(None)
    assert (harness.leadership.leaders_seen, harness.leadership.last_leader_id) == (2, 8)


def test_a_leadership_that_is_won_and_lost_is_in_the_audit_stream() -> None:
    harness = RecordedLeadership()
    for leader_id, epoch in ((None, 4), (NODE_ID, 5), (None, 6), (OTHER_ID, 6), (OTHER_ID, 6), (None, 7)):
        harness.change(leader_id, epoch)
    assert harness.audited == [
        ("leadership won", {"epoch": 5}),
        ("leadership lost", {"epoch": 5, "new_epoch": 6}),
    ]


@pytest.mark.parametrize("leader_id", [OTHER_ID, None])
def test_a_lost_leadership_undoes_what_is_not_committed_and_refuses_what_waits(leader_id: int | None) -> None:
    harness = RecordedLeadership()
    harness.change(NODE_ID)
    down, _, *done = harness.change(leader_id, EPOCH + 1)
    fields = {"epoch": EPOCH, "new_epoch": EPOCH + 1, "undone_to": HIGH_WATERMARK - 1}
    assert down == LogLine("warning", "no longer the active controller", fields)
    assert done == [*STEPS_DOWN, "attempt"]
    assert harness.decision_rights.active_epoch is None


def test_a_leader_of_a_later_epoch_steps_down_before_it_becomes_active_again() -> None:
    harness = RecordedLeadership()
    harness.change(NODE_ID)
    assert harness.change(NODE_ID) == [active_line(), ControllerActivated(EPOCH), *BECOMES, "attempt"]
    down, *effects = harness.change(NODE_ID, EPOCH + 2)
    assert isinstance(down, LogLine) and down.fields["new_epoch"] == EPOCH + 2
    assert effects == [
        active_line(EPOCH + 2),
        ControllerActivated(EPOCH + 2),
        *STEPS_DOWN,
        *BECOMES,
        "attempt",
    ]


@pytest.mark.parametrize("high_watermark", [-1, 0])
def test_without_a_high_watermark_all_is_undone(high_watermark: int) -> None:
    harness = RecordedLeadership()
    harness.change(NODE_ID)
    harness.core.high_watermark = high_watermark
    down, *_ = harness.change(None, EPOCH + 1)
    assert down.fields["undone_to"] == -1
    assert ("undo to", 0, 39) in harness.done
