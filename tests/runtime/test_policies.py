"""Policies are found by their entry points, get the file's properties, and their faults are logged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftd.config import DaemonConfig, load
from kraftd.controller.policies import NewTopic
from kraftd.ground.refusal import Refusal
from kraftd.runtime.entry_points import EntryPointError
from kraftd.runtime.policies import load_policies
from tests.runtime.installing import install

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = """
from kraftd.controller.policies import PolicyViolation

class Named:
    def __init__(self, properties):
        self.node_id = properties["node.id"]
    def validate(self, topic):
        if topic.name == "broken":
            raise RuntimeError("a fault")
        raise PolicyViolation(f"node {self.node_id} has no {topic.name}")

def fails(properties):
    raise ValueError("no properties")
"""


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def error(self, text: str, **more: Any) -> None:
        self.lines.append((text, more))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with two policies."""
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "policies_of_a_test", CODE, "kraftd.policy", {"named": "Named", "fails": "fails"})
    yield
    sys.modules.pop("policies_of_a_test", None)


def configured(*overrides: str) -> DaemonConfig:
    return load(ROOT / "config" / "controller.properties", overrides)


def test_without_the_keys_there_are_no_policies() -> None:
    policies = load_policies(configured(), Log())
    assert (policies.create_topic, policies.alter_config) == (None, None)


@pytest.mark.usefixtures("installed")
def test_a_policy_gets_the_properties_and_its_faults_are_logged() -> None:
    log = Log()
    policies = load_policies(configured("create.topic.policy.class.name=named"), log)
    with pytest.raises(Refusal, match="node 1 has no orders"):
        policies.check_topic(NewTopic(name="orders"))
    assert not log.lines
    with pytest.raises(Refusal, match="The policy failed with RuntimeError"):
        policies.check_topic(NewTopic(name="broken"))
    ((text, more),) = log.lines
    assert (text, more["key"]) == ("a policy failed", "create.topic.policy.class.name")
    assert isinstance(more["exc_info"], RuntimeError)


def test_a_java_class_is_refused_with_a_remedy() -> None:
    name = "org.example.AtLeastTwoReplicas"
    with pytest.raises(EntryPointError) as refused:
        load_policies(configured(f"create.topic.policy.class.name={name}"), Log())
    assert str(refused.value) == (
        f"create.topic.policy.class.name={name}: no policy of that name is installed; kraftd runs no Java "
        f"classes. Install a Python package with an entry point {name!r} in the group kraftd.policy "
        "(there is none), or remove the key"
    )


@pytest.mark.usefixtures("installed")
def test_a_policy_that_cannot_be_made_is_reported_with_its_error() -> None:
    with pytest.raises(EntryPointError, match=r"alter\.config\.policy\.class\.name=fails: .*no properties"):
        load_policies(configured("alter.config.policy.class.name=fails"), Log())
