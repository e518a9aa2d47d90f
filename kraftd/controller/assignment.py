"""The replicas that a partition gets: what somebody assigned by hand, and the record of a new partition."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.controller.decision import Refusal
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_directory_assignment, partition_record_version
from kraftd.metadata.state import RECOVERED
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

Replicas = tuple[int, ...]


def check_assignment(image: Image, replicas: Replicas, replication_factor: int | None) -> None:
    """Raises Refusal(INVALID_REPLICA_ASSIGNMENT): none, one twice, an unknown broker, the wrong number."""
    if not replicas:
        problem = "The assignment of a partition has no replicas."
    elif (unknown := next((r for r in sorted(replicas) if r not in image.brokers), None)) is not None:
        problem = f"The assignment names broker {unknown}, but no such broker is registered."
    elif len(set(replicas)) != len(replicas):
        twice = min(r for r in replicas if replicas.count(r) > 1)
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
    """Those on active brokers: the ISR that a new partition starts with."""
    brokers = image.brokers
    if all(r in brokers and brokers[r].is_active for r in replicas):
        return replicas
    return tuple([r for r in replicas if r in brokers and brokers[r].is_active])


def assigned_isr(image: Image, index: int, replicas: Replicas) -> Replicas:
    """The first ISR of a partition assigned by hand.  Raises Refusal(INVALID_REPLICA_ASSIGNMENT) if empty."""
    isr = active_replicas(image, replicas)
    if not isr:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers assigned to partition {index} are fenced or in controlled shutdown.",
        )
    return isr


def placed_isr(image: Image, replicas: Replicas) -> Replicas:
    """The first ISR of a partition that was placed.  Raises Refusal(INVALID_REPLICATION_FACTOR) if empty."""
    isr = active_replicas(image, replicas)
    if not isr:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "all brokers are fenced or in controlled shutdown",
        )
    return isr


def new_partition(
    image: Image, default_directory: Callable[[int], bytes]
) -> Callable[[bytes, int, Replicas, Replicas], VersionedRecord]:
    """A maker of new partitions' records from (topic id, index, replicas, ISR): the first in sync leads."""
    version = partition_record_version(image.metadata_version)
    with_directories = allows_directory_assignment(image.metadata_version)

    def record(topic_id: bytes, index: int, replicas: Replicas, isr: Replicas) -> VersionedRecord:
        directories = tuple([default_directory(r) for r in replicas]) if with_directories else ()
        message = PartitionRecord(
            index, topic_id, replicas, isr, (), (), isr[0], RECOVERED, 0, 0, directories
        )
        return VersionedRecord(message, version)

    return record
