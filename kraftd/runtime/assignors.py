"""Assignors of consumer groups: Kafka's two by name or class, others from entry points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftd.configdef.node import NodeConfig
from kraftd.groups.consumer.assignors import ASSIGNORS, RANGE, UNIFORM
from kraftd.groups.consumer.assignors.custom import Custom
from kraftd.groups.consumer.assignors.spec import Assignor, AssignorFailed
from kraftd.runtime.children.assignor import OutsideAssignor
from kraftd.runtime.children.assignor_process import GROUP, KEY
from kraftd.runtime.entry_points import load_entry_point

_PACKAGE = "org.apache.kafka.coordinator.group.assignor"
_OF_CLASSES = {f"{_PACKAGE}.UniformAssignor": UNIFORM, f"{_PACKAGE}.RangeAssignor": RANGE}


def load_assignors(static: NodeConfig, properties: Mapping[str, str], log: Any) -> dict[str, Assignor]:
    """The assignors that `group.consumer.assignors` names, by name, in its order. Raises EntryPointError."""
    names = static.value(KEY)
    assert isinstance(names, list)
    found: dict[str, Assignor] = {}
    for configured in names:
        name = _OF_CLASSES.get(configured, configured)
        found[name] = ASSIGNORS.get(name) or _custom(name, properties, log)
    return found


def _custom(name: str, properties: Mapping[str, str], log: Any) -> Custom:
    def failed(group_id: str, failure: AssignorFailed) -> None:
        log.error("an assignor failed", assignor=name, group=group_id, error=str(failure))

    load_entry_point(KEY, name, GROUP, properties)  # a fault of it shows at the start
    return Custom(name, OutsideAssignor(name, properties), failed)
