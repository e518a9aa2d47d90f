"""Kafka's numbers for resource configs: types of resources, operations, sources of a value."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

DUPLICATE_RESOURCE = "The request names this resource more than once."


class ResourceType(IntEnum):
    """The type of a config's resource (ConfigResource.Type). BROKER includes controllers; its name "" is the
    cluster.
    """

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """An operation of IncrementalAlterConfigs on a key (AlterConfigOp.OpType, KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigSource(IntEnum):
    """The source of an effective value (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


CLUSTER = ""  # the name of the BROKER resource for all nodes
MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
CORDONED_LOG_DIRS = "cordoned.log.dirs"
ELR_FEATURE = "eligible.leader.replicas.version"


def named_resource(resource: Any) -> tuple[int, str]:
    """The type and the name of a resource in a request about configs."""
    return resource.resource_type, resource.resource_name
