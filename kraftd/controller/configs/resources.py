"""The words of resource configs: kinds of resources, kinds of changes, where a value comes from. Kafka's
numbers.
"""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """What a config belongs to (ConfigResource.Type). BROKER stands for controllers too; its "" is the
    whole cluster.
    """

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to a key (AlterConfigOp.OpType, KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigSource(IntEnum):
    """Where an effective value comes from (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


CLUSTER = ""  # the name of the BROKER resource that holds for all nodes
MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
CORDONED_LOG_DIRS = "cordoned.log.dirs"
ELR_FEATURE = "eligible.leader.replicas.version"
