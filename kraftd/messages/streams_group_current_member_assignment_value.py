"""StreamsGroupCurrentMemberAssignmentValue: the value of a group coordinator's record of key 22, versions 0, flexible 0+.

Generated from schemas/StreamsGroupCurrentMemberAssignmentValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    active_tasks_pending_revocation: list[TaskIds] = []
    standby_tasks_pending_revocation: list[TaskIds] = []
    warmup_tasks_pending_revocation: list[TaskIds] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupCurrentMemberAssignmentValue", 22, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupCurrentMemberAssignmentValue", (
            ("member_epoch", "MemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("previous_member_epoch", "PreviousMemberEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("state", "State", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("active_tasks", "ActiveTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("standby_tasks", "StandbyTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("warmup_tasks", "WarmupTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("active_tasks_pending_revocation", "ActiveTasksPendingRevocation", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("standby_tasks_pending_revocation", "StandbyTasksPendingRevocation", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("warmup_tasks_pending_revocation", "WarmupTasksPendingRevocation", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TaskIds", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
            ("assignment_epochs", "AssignmentEpochs", "int32", 1, (0, 0), (0, 32767), (0, 32767), 0, None, 0, ""),
        )),
    ),
)
