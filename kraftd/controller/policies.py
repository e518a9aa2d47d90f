"""Policies: the operator's own code, which may refuse new topics and config changes (KIP-108, KIP-133).

Kafka's are Java classes; these are Python objects, from entry points of the group ``kraftd.policy``. An entry
point is called once at the start, with the properties of the configuration file, and returns the policy:

    class AtLeastTwoReplicas:
        def __init__(self, properties): ...
        def validate(self, topic: NewTopic) -> None:
            if topic.replication_factor == 1:
                raise PolicyViolation("a topic needs two replicas")

A policy runs on the event loop, between other requests, so it must return quickly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode


class PolicyViolation(Exception):
    """A policy's refusal; its text goes into the answer."""


class NewTopic(Struct, frozen=True, kw_only=True):
    """A topic to be created, with ``assignments`` (replicas by partition) or with numbers."""

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    assignments: Mapping[int, tuple[int, ...]] | None = None
    configs: Mapping[str, str] = {}


class ConfigChange(Struct, frozen=True, kw_only=True):
    """The configs of one resource that a request changes; a value of None deletes.

    ``resource_type`` is Kafka's number: 2 topic, 4 broker, 16 client metrics, 32 group.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """The interface of ``create.topic.policy.class.name``."""

    def validate(self, topic: NewTopic) -> None:
        """Raises PolicyViolation for a topic that may not be created."""


class AlterConfigPolicy(Protocol):
    """The interface of ``alter.config.policy.class.name``."""

    def validate(self, change: ConfigChange) -> None:
        """Raises PolicyViolation for a change that may not be made."""


class Policies(Struct, frozen=True):
    """The policies of a controller, each None if not configured."""

    create_topic: CreateTopicPolicy | None = None
    alter_config: AlterConfigPolicy | None = None

    def check_topic(self, topic: NewTopic) -> None:
        """Raises Refusal: POLICY_VIOLATION, or UNKNOWN_SERVER_ERROR for a policy that fails."""
        if self.create_topic is not None:
            try:
                self.create_topic.validate(topic)
            except Exception as error:
                raise _refusal(error) from error

    def check_configs(self, change: ConfigChange) -> None:
        """Raises Refusal, as ``check_topic``."""
        if self.alter_config is not None:
            try:
                self.alter_config.validate(change)
            except Exception as error:
                raise _refusal(error) from error


NO_POLICIES = Policies()


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, PolicyViolation):
        return Refusal(ErrorCode.POLICY_VIOLATION, str(error) or None)
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"The policy failed with {type(error).__name__}.")
