"""The states in which a node may decide and append, and the errors of its refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

ELSEWHERE = (ErrorCode.NOT_CONTROLLER, "The active controller appears to be 7.")


def rights(voters: int = 3, leader_id: int | None = 7, **state: Any) -> DecisionRights:
    core: Any = SimpleNamespace(voters=range(voters), leader_id=leader_id)
    made = DecisionRights(core)
    for name, value in state.items():
        setattr(made, name, value)
    return made


def refusal(check: Any, **options: Any) -> tuple[ErrorCode, str | None] | None:
    try:
        check(**options)
    except Refusal as error:
        return error.code, error.message
    return None


@pytest.mark.parametrize(
    ("epoch", "stopping", "voters", "decides", "answers"),
    [
        (None, False, 3, False, True),
        (0, False, 3, True, True),
        (5, False, 3, True, True),
        (5, True, 3, False, False),  # another voter takes over
        (5, True, 2, False, False),
        (5, True, 1, True, True),  # there is no other
        (None, True, 1, False, True),
        (None, True, 3, False, False),
    ],
)
def test_an_active_controller_decides_until_another_can_take_over(
    epoch: int | None, stopping: bool, voters: int, decides: bool, answers: bool
) -> None:
    node = rights(voters, active_epoch=epoch, stopping=stopping)
    assert node.active == (epoch is not None)
    assert refusal(node.check_may_decide) == (None if decides else ELSEWHERE)
    assert refusal(node.check_may_decide, on_standby=True) == (None if answers else ELSEWHERE)


@pytest.mark.parametrize(
    ("disk_full", "ending", "expected"),
    [
        (False, False, None),
        (True, False, (ErrorCode.NOT_CONTROLLER, "The controller's disk is full.")),
        (True, True, (ErrorCode.NOT_CONTROLLER, "The controller's disk is full.")),
        (False, True, ELSEWHERE),
    ],
)
def test_nothing_is_appended_on_a_full_disk_or_during_a_shutdown(
    disk_full: bool, ending: bool, expected: Any
) -> None:
    assert refusal(rights(disk_full=disk_full, ending=ending).check_may_append) == expected


@pytest.mark.parametrize(
    ("leader_id", "text"),
    [
        (None, "No controller appears to be active."),
        (0, "The active controller appears to be 0."),
        (7, "The active controller appears to be 7."),
    ],
)
def test_a_standbys_refusal_names_the_active_controller_as_in_kafka(leader_id: int | None, text: str) -> None:
    refusal = rights(leader_id=leader_id).not_controller()
    assert (refusal.code, refusal.message) == (ErrorCode.NOT_CONTROLLER, text)


def test_a_new_node_is_a_standby_without_faults() -> None:
    node = rights()
    assert (node.active_epoch, node.stopping, node.ending, node.disk_full) == (None, False, False, False)
    assert repr(node) == "<DecisionRights standby>"
    assert repr(rights(active_epoch=5, ending=True)) == "<DecisionRights active in epoch 5, ending>"
