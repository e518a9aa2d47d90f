"""Policies from entry points: found by name, made with the file's properties, their faults logged."""

from __future__ import annotations

from typing import Any

from kraftd.config import DaemonConfig
from kraftd.controller.policies import Policies, PolicyViolation
from kraftd.runtime.entry_points import load_entry_point

GROUP = "kraftd.policy"


def load_policies(config: DaemonConfig, log: Any) -> Policies:
    """The policies that the configuration names. Raises EntryPointError."""
    return Policies(
        _load("create.topic.policy.class.name", config.create_topic_policy, config, log),
        _load("alter.config.policy.class.name", config.alter_config_policy, config, log),
    )


def _load(key: str, name: str, config: DaemonConfig, log: Any) -> Any:
    if not name:
        return None
    return LoggedPolicy(key, load_entry_point(key, name, GROUP, config.node_config), log)


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
