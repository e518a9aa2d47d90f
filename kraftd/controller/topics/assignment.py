"""The replicas of new partitions: manual assignments, and the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kraftd.controller.partitions.edits import default_directories
from kraftd.ground.refusal import Refusal
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_directory_assignment, partition_record_version
from kraftd.metadata.state import RECOVERED
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

Replicas = tuple[int, ...]


def check_assignment(image: Image, replicas: Replicas, replication_factor: int | None) -> None:
    """Raises Refusal(INVALID_REPLICA_ASSIGNMENT) for no replica, a repeated one, an unknown broker, a wrong
    number.
    """
    # With more replicas than brokers, one of the first is unknown or repeated: the rest changes nothing.
    examined = replicas[: len(image.brokers) + 1]
    if not replicas:
        problem = "The assignment of a partition has no replicas."
    elif (unknown := next((r for r in sorted(examined) if r not in image.brokers), None)) is not None:
        problem = f"The assignment names broker {unknown}, but no such broker is registered."
    elif len(set(examined)) != len(examined):
        twice = min(r for r, count in Counter(examined).items() if count > 1)
        problem = f"The assignment names broker {twice} more than once for the same partition."
    elif replication_factor is not None and len(replicas) != replication_factor:
        problem = (
            f"The assignment gives a partition {len(replicas)} replica(s), "
            f"where the other partitions have {replication_factor}."
        )
    else:
        return
    raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def active_replicas(image: Image, replicas: Replicas) -> Replicas:
    """The replicas on active brokers: a new partition's first ISR."""
    brokers = image.brokers
    if all(r in brokers and brokers[r].is_active for r in replicas):
        return replicas
    return tuple([r for r in replicas if r in brokers and brokers[r].is_active])


def assigned_isr(image: Image, index: int, replicas: Replicas) -> Replicas:
    """The first ISR of a manually assigned partition.  Raises Refusal(INVALID_REPLICA_ASSIGNMENT)
    if empty.
    """
    isr = active_replicas(image, replicas)
    if not isr:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers assigned to partition {index} are fenced or in controlled shutdown.",
        )
    return isr


class NewPartitions:
    """Makes the records of one request's new partitions, of which many have the same replicas."""

    __slots__ = ("_default_directory", "_image", "_isrs", "_known", "_version", "_with_directories")

    def __init__(self, image: Image) -> None:
        self._image = image
        self._version = partition_record_version(image.metadata_version)
        self._with_directories = allows_directory_assignment(image.metadata_version)
        self._default_directory = default_directories(image)
        self._isrs: dict[Replicas, Replicas] = {}
        self._known: dict[Replicas, tuple[bytes, ...]] = {}

    def placed(self, placed: list[Replicas]) -> list[tuple[Replicas, Replicas]]:
        """The placed partitions, each with its first ISR.

        Raises Refusal(INVALID_REPLICATION_FACTOR) if one is empty.
        """
        isrs = self._isrs
        for replicas in placed:
            if replicas not in isrs:
                isr = active_replicas(self._image, replicas)
                if not isr:
                    raise Refusal(
                        ErrorCode.INVALID_REPLICATION_FACTOR,
                        "all brokers are fenced or in controlled shutdown",
                    )
                isrs[replicas] = isr
        return [(replicas, isrs[replicas]) for replicas in placed]

    def records(
        self, topic_id: bytes, first_index: int, partitions: Iterable[tuple[Replicas, Replicas]]
    ) -> list[VersionedRecord]:
        """The records of a topic's partitions (replicas, ISR) from an index on; the first in sync leads."""
        known, version = self._known, self._version
        records = []
        for index, (replicas, isr) in enumerate(partitions, first_index):
            directories = known.get(replicas)
            if directories is None:
                directories = known[replicas] = self._directories(replicas)
            message = PartitionRecord(
                index, topic_id, replicas, isr, (), (), isr[0], RECOVERED, 0, 0, directories
            )
            records.append(VersionedRecord(message, version))
        return records

    def _directories(self, replicas: Replicas) -> tuple[bytes, ...]:
        if not self._with_directories:
            return ()
        return tuple([self._default_directory(replica) for replica in replicas])

    def __repr__(self) -> str:
        return f"<NewPartitions on {len(self._known)} lists of replicas>"
