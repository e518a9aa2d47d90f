"""Assignors are found by the names of Kafka's, of its classes, and of entry points."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftd.configdef.node import NodeConfig
from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import Assigned, AssignorFailed, GroupSpec, MemberSpec, Waits
from kraftd.runtime.assignors import load_assignors
from kraftd.runtime.children.assignor import OutsideAssignor
from kraftd.runtime.entry_points import EntryPointError
from tests.runtime.installing import install

CODE = """
import os, time
def make(properties):
    name = properties["node.id"]
    def assign(group):
        what = group.group_id
        if what == "hangs":
            time.sleep(60)
        elif what == "dies":
            os._exit(7)
        elif what == "prints":
            print("a line on standard output", flush=True)
        elif what == "members":
            return {key: {bytes(16): one.assigned[bytes(16)]} for key, one in group.members.items()}
        return {name: {bytes(16): {0}}}
    return assign
"""
CLASSES = "org.apache.kafka.coordinator.group.assignor."


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def error(self, text: str, **more: Any) -> None:
        self.lines.append((text, more["assignor"], more["group"], more["error"]))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    install(tmp_path, "assignors_of_a_test", CODE, "kraftd.assignor", {"own": "make"})
    yield
    sys.modules.pop("assignors_of_a_test", None)


def loaded(names: str, log: Log | None = None) -> Any:
    properties = {"node.id": "1", "group.consumer.assignors": names}
    return load_assignors(NodeConfig.of(properties), properties, log or Log())


def spec_of(*members: str, group: str = "") -> GroupSpec:
    specs = {name: MemberSpec(None, (bytes(16),), {}) for name in members}
    return GroupSpec(specs, True, {bytes(16): 1}, group)


def waited_for(slices: Waits[Assigned]) -> Assigned:
    """The result, after the waits that the slices ask for."""
    while True:
        try:
            time.sleep((next(slices) or 0) / 1000)
        except StopIteration as end:
            assigned: Assigned = end.value
            return assigned


def test_names_and_classes_of_kafka_s_assignors_are_its_assignors() -> None:
    assert list(loaded(f"{CLASSES}RangeAssignor,uniform").items()) == [
        ("range", ASSIGNORS["range"]),
        ("uniform", ASSIGNORS["uniform"]),
    ]


@pytest.mark.usefixtures("installed")
def test_an_entry_point_gets_the_properties_and_its_faults_are_logged() -> None:
    log = Log()
    found = loaded("own,range", log)
    assert list(found) == ["own", "range"]
    own = found["own"]
    for group in ("", "prints"):
        assert waited_for(own(spec_of("1", group=group))) == {"1": {bytes(16): {0}}}
    assert not log.lines
    with pytest.raises(AssignorFailed, match="there is no member 1"):
        waited_for(own(spec_of("2", group="g")))
    with pytest.raises(AssignorFailed, match="its process has ended with 7"):
        waited_for(own(spec_of("1", group="dies")))
    assert log.lines == [
        ("an assignor failed", "own", "g", "there is no member 1"),
        ("an assignor failed", "own", "dies", "its process has ended with 7"),
    ]


@pytest.mark.usefixtures("installed")
def test_one_that_hangs_is_given_up_and_holds_no_other_group() -> None:
    own = OutsideAssignor("own", {"node.id": "1"}, limit_s=0.5)
    hanging = own(spec_of("1", group="hangs"))
    for _ in range(3):
        next(hanging)  # it has its process
    assert waited_for(own(spec_of("1"))) == {"1": {bytes(16): {0}}}
    with pytest.raises(AssignorFailed, match=r"it has returned nothing within 0\.5 s"):
        waited_for(hanging)
    # The group has ended meanwhile, or its partition has another coordinator.
    hanging = own(spec_of("1", group="hangs"))
    for _ in range(3):
        next(hanging)
    assert repr(own) == "<OutsideAssignor, 1 busy and 0 idle processes>"
    hanging.close()
    assert repr(own) == "<OutsideAssignor, 0 busy and 0 idle processes>"


@pytest.mark.usefixtures("installed")
def test_it_gets_what_every_member_has_and_answers_for_all() -> None:
    topics = (bytes(16),)
    members = {f"m{number}": MemberSpec(None, topics, {topics[0]: {number}}) for number in range(1000)}
    members["many"] = MemberSpec("static", topics, {topics[0]: set(range(1000, 9000))})
    group = GroupSpec(members, True, {topics[0]: 9000}, "members")
    own = OutsideAssignor("own", {"node.id": "1"})
    assert waited_for(own(group)) == {name: one.assigned for name, one in members.items()}


def test_an_assignor_that_is_not_installed_is_refused_with_a_remedy() -> None:
    with pytest.raises(
        EntryPointError,
        match=r"group\.consumer\.assignors=sticky: no assignor .* 'sticky' in the group kraftd\.assignor",
    ):
        loaded("uniform,sticky")
