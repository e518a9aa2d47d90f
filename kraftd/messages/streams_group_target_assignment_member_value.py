"""StreamsGroupTargetAssignmentMemberValue: the value of a group coordinator's record of key 21, versions 0, flexible 0+.

Generated from schemas/StreamsGroupTargetAssignmentMemberValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupTargetAssignmentMemberValue", 21, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupTargetAssignmentMemberValue", (
            ("active_tasks", "ActiveTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("standby_tasks", "StandbyTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
            ("warmup_tasks", "WarmupTasks", "TaskIds", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TaskIds", (
            ("subtopology_id", "SubtopologyId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
