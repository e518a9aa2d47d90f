"""Assignors are found by the names of Kafka's, of its classes, and of entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftd.configdef.node import NodeConfig
from kraftd.groups.consumer.assignors import ASSIGNORS
from kraftd.groups.consumer.assignors.spec import Assigned, AssignorFailed, GroupSpec, MemberSpec, finish
from kraftd.runtime.assignors import load_assignors
from kraftd.runtime.entry_points import EntryPointError
from tests.runtime.installing import install

CODE = """
def make(properties):
    name = properties["node.id"]
    return lambda group: {name: {bytes(16): {0}}}
"""
CLASSES = "org.apache.kafka.coordinator.group.assignor."


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []

    def error(self, text: str, **more: Any) -> None:
        self.lines.append((text, more["assignor"]))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "assignors_of_a_test", CODE, "kraftd.assignor", {"own": "make"})
    yield
    sys.modules.pop("assignors_of_a_test", None)


def loaded(names: str, log: Log | None = None) -> Any:
    properties = {"node.id": "1", "group.consumer.assignors": names}
    return load_assignors(NodeConfig.of(properties), properties, log or Log())


def spec_of(*members: str) -> GroupSpec:
    specs = {name: MemberSpec(None, (bytes(16),), {}) for name in members}
    return GroupSpec(specs, True, {bytes(16): 1})


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
    assigned: Assigned = finish(found["own"](spec_of("1")))
    assert assigned == {"1": {bytes(16): {0}}}
    assert not log.lines
    with pytest.raises(AssignorFailed, match="assignor own: there is no member 1"):
        finish(found["own"](spec_of("2")))
    assert log.lines == [("an assignor failed", "own")]


def test_an_assignor_that_is_not_installed_is_refused_with_a_remedy() -> None:
    with pytest.raises(
        EntryPointError,
        match=r"group\.consumer\.assignors=sticky: no assignor .* 'sticky' in the group kraftd\.assignor",
    ):
        loaded("uniform,sticky")
