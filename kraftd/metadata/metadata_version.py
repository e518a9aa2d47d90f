"""metadata.version: its levels, what each allows, and the version of each record at it.

Facts: KIP-778 and the MetadataVersion of Apache Kafka 4.3.1.  A level here is the plain feature level, 7-30.
"""

from __future__ import annotations

from typing import Final

from kraftd.named_tuple import NamedTuple

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"


class Level(NamedTuple):
    """One level: its name, its release, and whether records changed in it."""

    level: int
    name: str
    records_changed: bool

    @property
    def release(self) -> str:
        return self.name.partition("-")[0]

    def __repr__(self) -> str:
        return f"{self.level} ({self.name})"


LEVELS: Final[tuple[Level, ...]] = (
    Level(7, "3.3-IV3", False),
    Level(8, "3.4-IV0", True),
    Level(9, "3.5-IV0", False),
    Level(10, "3.5-IV1", False),
    Level(11, "3.5-IV2", True),
    Level(12, "3.6-IV0", False),
    Level(13, "3.6-IV1", True),
    Level(14, "3.6-IV2", True),
    Level(15, "3.7-IV0", True),
    Level(16, "3.7-IV1", False),
    Level(17, "3.7-IV2", True),
    Level(18, "3.7-IV3", False),
    Level(19, "3.7-IV4", False),
    Level(20, "3.8-IV0", False),
    Level(21, "3.9-IV0", False),
    Level(22, "4.0-IV0", False),
    Level(23, "4.0-IV1", True),
    Level(24, "4.0-IV2", False),
    Level(25, "4.0-IV3", False),
    Level(26, "4.1-IV0", False),
    Level(27, "4.1-IV1", False),
    Level(28, "4.2-IV0", False),
    Level(29, "4.2-IV1", False),
    Level(30, "4.3-IV0", True),
    Level(31, "4.4-IV0", False),  # unstable in 4.3
)
MINIMUM_VERSION: Final = 7
LATEST_PRODUCTION: Final = 30
LATEST_TESTING: Final = 31

_BY_LEVEL = {level.level: level for level in LEVELS}


def is_known(level: int) -> bool:
    return level in _BY_LEVEL


def version_name(level: int) -> str:
    """Kafka's name of a level, such as "4.3-IV0"; the plain number if there is no such level."""
    known = _BY_LEVEL.get(level)
    return str(level) if known is None else known.name


def parse_version(text: str, *, unstable: bool = False) -> int:
    """The level of a release ("4.3", "4.3.1": its last level) or of a level's name ("4.3-IV0").

    Raises ValueError with the known names if there is none.
    """
    key = ".".join(text.split(".")[:2])
    latest = LATEST_TESTING if unstable else LATEST_PRODUCTION
    best = None
    for level in LEVELS:
        stable = level.level <= LATEST_PRODUCTION
        if level.level <= latest and (level.name == key or (stable and level.release == key)):
            best = level.level
    if best is None:
        names = ", ".join(level.name for level in LEVELS if level.level <= latest)
        raise ValueError(f"{text!r} is no release or metadata.version known here; known are {names}")
    return best


def records_changed_between(first: int, second: int) -> bool:
    """Return whether any record's form changed between two levels, in either direction: then a downgrade
    loses metadata.
    """
    low, high = sorted((first, second))
    return any(level.records_changed for level in LEVELS if low < level.level <= high)


# What a level allows.


def allows_zk_migration_field(level: int) -> bool:
    return level >= 8


def allows_scram(level: int) -> bool:
    return level >= 11


def bumps_leader_epoch_on_isr_shrink(level: int) -> bool:
    return level < 12


def allows_transactions(level: int) -> bool:
    return level >= 13


def allows_delegation_tokens(level: int) -> bool:
    return level >= 14


def allows_controller_registration(level: int) -> bool:
    return level >= 15


def allows_directory_assignment(level: int) -> bool:
    return level >= 17


def allows_elr(level: int) -> bool:
    return level >= 23


def allows_cordoned_directories(level: int) -> bool:
    return level >= 30


# The version in which a record is written.


def register_broker_record_version(level: int) -> int:
    if level >= 30:
        return 4
    if level >= 17:
        return 3
    return 2 if level >= 8 else 1


def broker_registration_change_record_version(level: int) -> int:
    if level >= 30:
        return 3
    return 2 if level >= 17 else 1


def partition_record_version(level: int) -> int:
    if level >= 23:
        return 2
    return 1 if level >= 17 else 0


def partition_change_record_version(level: int) -> int:
    return partition_record_version(level)


# Lowest level at which a record may be written, if that is above the minimum.
_FIRST_LEVEL: Final[dict[str, int]] = {
    "BeginTransactionRecord": 13,
    "EndTransactionRecord": 13,
    "AbortTransactionRecord": 13,
    "UserScramCredentialRecord": 11,
    "RemoveUserScramCredentialRecord": 11,
    "DelegationTokenRecord": 14,
    "RemoveDelegationTokenRecord": 14,
    "RegisterControllerRecord": 15,
    "ClearElrRecord": 23,
}
_VERSION_OF = {
    "RegisterBrokerRecord": register_broker_record_version,
    "BrokerRegistrationChangeRecord": broker_registration_change_record_version,
    "PartitionRecord": partition_record_version,
    "PartitionChangeRecord": partition_change_record_version,
}


def record_version(message_class: type, level: int) -> int:
    """The version in which a record of this class is written at a metadata.version.

    Raises ValueError if the metadata.version has no such record.
    """
    name = message_class.__name__
    first = _FIRST_LEVEL.get(name, MINIMUM_VERSION)
    if level < first:
        raise ValueError(
            f"{name} needs metadata.version {first} ({version_name(first)}), finalized is {level}"
        )
    choose = _VERSION_OF.get(name)
    return 0 if choose is None else choose(level)
