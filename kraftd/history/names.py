"""Kafka's names for the numbers in records, and lists of ids as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.metadata.metadata_version import METADATA_VERSION, version_name

RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}

ACL_RESOURCE_TYPES = tuple(one.name for one in AclResourceType)
PATTERN_TYPES = tuple(one.name for one in AclPatternType)
OPERATIONS = tuple(one.name for one in AclOperation)
PERMISSIONS = tuple(one.name for one in AclPermission)
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
RECOVERY_STATES = ("RECOVERED", "RECOVERING")


def named(names: Sequence[str], number: int) -> str:
    """The name of a number, or the number itself if Kafka has no name for it."""
    return names[number] if 0 <= number < len(names) else str(number)


def resource_type(number: int) -> str:
    return RESOURCE_TYPES.get(number, str(number))


def feature_level(feature: str, level: int) -> str:
    """A feature's level for people: a metadata.version by its name, "4.3-IV0"."""
    return version_name(level) if feature == METADATA_VERSION else str(level)


def ids(numbers: Iterable[int]) -> str:
    """ "1, 2, 3", or "none"."""
    return ", ".join(map(str, numbers)) or "none"


def brokers(numbers: Sequence[int]) -> str:
    """ "broker 1" or "brokers 1, 2, 3"."""
    return f"{'broker' if len(numbers) == 1 else 'brokers'} {ids(numbers)}"


def count(number: int, noun: str) -> str:
    """ "1 partition" or "3 partitions"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
