"""Policies from entry points: found by name, made with the file's properties, their faults logged."""

from __future__ import annotations

from typing import Any

from kraftd.config import DaemonConfig
from kraftd.controller.policies import Policies, PolicyViolation

GROUP = "kraftd.policy"


class PolicyError(Exception):
    """A policy cannot be loaded; the text names the key, the value and what to do."""


def load_policies(config: DaemonConfig, log: Any) -> Policies:
    """The policies that the configuration names. Raises PolicyError."""
    return Policies(
        _load("create.topic.policy.class.name", config.create_topic_policy, config, log),
        _load("alter.config.policy.class.name", config.alter_config_policy, config, log),
    )


def _load(key: str, name: str, config: DaemonConfig, log: Any) -> Any:
    if not name:
        return None
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        there_are = f"there are {', '.join(sorted(known))}" if known else "there is none"
        raise PolicyError(
            f"{key}={name}: no policy of that name is installed; kraftd runs no Java classes. Install a "
            f"Python package with an entry point {name!r} in the group {GROUP} ({there_are}), or remove "
            "the key"
        )
    try:
        return LoggedPolicy(key, known[name].load()(dict(config.node_config)), log)
    except Exception as error:
        raise PolicyError(f"{key}={name}: the policy cannot be loaded: {error!r}") from error


class LoggedPolicy:
    """A policy whose faults are logged with their traceback; the request is refused."""

    def __init__(self, key: str, policy: Any, log: Any) -> None:
        self._key = key
        self._policy = policy
        self._log = log

    def validate(self, request: Any) -> None:
        try:
            self._policy.validate(request)
        except PolicyViolation:
            raise
        except Exception as error:
            self._log.error("a policy failed", key=self._key, error=repr(error), exc_info=error)
            raise

    def __repr__(self) -> str:
        return f"<LoggedPolicy {self._policy!r} of {self._key}>"
