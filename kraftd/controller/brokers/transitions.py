"""The consequences of a broker's new state for its partitions: fenced, unfenced, stopping, unregistered,
disks lost.

Each function returns the records of the affected partitions and that of the broker. Heartbeats, expired
sessions and registrations call them. Those that may affect very many partitions are generators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kraftd.controller.configs.elr import elr_enabled
from kraftd.controller.context import Context
from kraftd.controller.partitions.change import Election
from kraftd.controller.partitions.edits import CHANGE_US, PartitionEdits
from kraftd.ground.pace import Pace, Sliced, Slices, at_once
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_cordoned_directories, allows_directory_assignment
from kraftd.metadata.partition_index import TopicPartition
from kraftd.metadata.state import NO_LEADER, BrokerState, PartitionState
from kraftd.wire.record_frame import VersionedRecord

# The values of BrokerRegistrationChangeRecord's fenced and inControlledShutdown; 0 is no change.
FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


@Sliced
def handle_broker_fenced(ctx: Context, broker_id: int) -> Slices[list[VersionedRecord]]:
    """Fence a broker that first leaves every ISR and leadership.  Raises KeyError if unregistered."""
    records = yield from leave(ctx, ctx.image.partitions_of(broker_id), broker_id)
    return records + fence(ctx.image.brokers[broker_id])


def fence(broker: BrokerState) -> list[VersionedRecord]:
    """Fence a broker that has already left its partitions."""
    return [VersionedRecord(BrokerRegistrationChangeRecord(broker.id, broker.epoch, FENCE), 0)]


def handle_broker_leaves(
    ctx: Context, broker_id: int, partitions: Iterable[tuple[bytes, int]]
) -> list[VersionedRecord]:
    """Do a part of `handle_broker_fenced`: the broker leaves the ISR of these partitions."""
    return at_once(changes(ctx, partitions, leaving=broker_id))


@Sliced
def handle_broker_unfenced(ctx: Context, broker_id: int, broker_epoch: int) -> Slices[list[VersionedRecord]]:
    """Unfence a broker, which then leads the partitions that had no leader and can now have one."""
    unfence = VersionedRecord(BrokerRegistrationChangeRecord(broker_id, broker_epoch, UNFENCE), 0)
    leaderless = ctx.image.partitions_without_leader()
    return [unfence, *(yield from changes(ctx, leaderless, joining=broker_id))]


@Sliced
def handle_broker_in_controlled_shutdown(
    ctx: Context, broker_id: int, broker_epoch: int
) -> Slices[list[VersionedRecord]]:
    """Mark a broker that wants to stop, if it is not marked yet. Remove it from every ISR that has another
    member (KIP-841).
    """
    records = mark_controlled_shutdown(ctx, broker_id, broker_epoch)
    return records + (yield from leave(ctx, ctx.image.partitions_of(broker_id), broker_id))


def mark_controlled_shutdown(ctx: Context, broker_id: int, broker_epoch: int) -> list[VersionedRecord]:
    """The record that the broker wants to stop; none if the image has it already."""
    broker = ctx.image.brokers.get(broker_id)
    if broker is not None and broker.in_controlled_shutdown:
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id, broker_epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [VersionedRecord(change, 1)]


@Sliced
def handle_broker_unregistered(
    ctx: Context, broker_id: int, broker_epoch: int
) -> Slices[list[VersionedRecord]]:
    """Remove a broker from every ISR, then its registration; its replicas stay assigned to it."""
    while not ctx.image.settle_hosted(broker_id):
        yield
    records = yield from leave(ctx, ctx.image.partitions_of(broker_id), broker_id)
    records += yield from leave_elr(ctx, broker_id)
    records.append(VersionedRecord(UnregisterBrokerRecord(broker_id, broker_epoch), 0))
    return records


@Sliced
def handle_broker_shutdown(ctx: Context, broker_id: int, clean: bool) -> Slices[list[VersionedRecord]]:
    """Handle the end of a broker's last incarnation, as its new registration reports; the caller adds the
    record of the registration.

    After an unclean end it may have lost unsynced records, so with ELR it is neither in sync nor eligible.
    """
    unclean = not clean and elr_enabled(ctx)
    while not ctx.image.settle_hosted(broker_id):
        yield
    records = yield from leave(ctx, _may_be_in_isr(ctx.image, broker_id), broker_id, unclean=unclean)
    if unclean:
        records += yield from leave_elr(ctx, broker_id, unclean=True)
    return records


def _may_be_in_isr(image: Image, broker_id: int) -> Iterator[tuple[bytes, int]]:
    """The partitions whose ISR may hold a broker that has ended. A fenced broker leads nothing and is only in
    ISRs of which it is the last member. So only partitions without a leader are examined, not all that it
    hosts.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.fenced:
        return image.partitions_of(broker_id)
    return image.partitions_without_leader()


@Sliced
def handle_directories_offline(
    ctx: Context, broker_id: int, broker_epoch: int, offline_directories: Collection[bytes]
) -> Slices[list[VersionedRecord]]:
    """Remove a broker's replicas in directories that it has just lost from their ISRs (KIP-858).

    Nothing for directories whose loss was known, nor before metadata.version 3.7-IV2.
    """
    image = ctx.image
    if not offline_directories or not allows_directory_assignment(image.metadata_version):
        return []
    present = image.brokers[broker_id].directories
    lost = frozenset(present).intersection(offline_directories)
    if not lost:
        return []
    records = yield from changes(ctx, image.partitions_of(broker_id), leaving=broker_id, places=lost)
    left = tuple([directory for directory in present if directory not in lost])
    change = BrokerRegistrationChangeRecord(broker_id, broker_epoch, log_dirs=left)
    records.append(VersionedRecord(change, 2))
    return records


def handle_directories_cordoned(
    ctx: Context, broker_id: int, broker_epoch: int, cordoned_directories: Collection[bytes] | None
) -> list[VersionedRecord]:
    """Record the directories that get no new replicas (KIP-1066), if they changed; None: not known yet."""
    image = ctx.image
    if cordoned_directories is None or not allows_cordoned_directories(image.metadata_version):
        return []
    before = image.brokers[broker_id].cordoned_directories
    if before is not None and set(before) == set(cordoned_directories):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id, broker_epoch, cordoned_log_dirs=tuple(cordoned_directories)
    )
    return [VersionedRecord(change, 3)]


def _lives_in(partition: PartitionState, broker_id: int, places: Collection[bytes]) -> bool:
    """Return whether the broker's replica, if it has one, is in one of these directories."""
    return broker_id in partition.replicas and partition.directory(broker_id) in places


def leave(
    ctx: Context, partitions: Iterable[TopicPartition], broker_id: int, *, unclean: bool = False
) -> Slices[list[VersionedRecord]]:
    """Remove the broker from the ISRs of these partitions."""
    return changes(ctx, partitions, leaving=broker_id, members=True, unclean=unclean)


def leave_elr(ctx: Context, broker_id: int, *, unclean: bool = False) -> Slices[list[VersionedRecord]]:
    """Remove the broker from every ELR."""
    with_it = ctx.image.partitions_with_elr_member(broker_id)
    return changes(ctx, with_it, leaving=broker_id, unclean=unclean)


def changes(
    ctx: Context,
    partitions: Iterable[TopicPartition],
    *,
    leaving: int = NO_LEADER,
    joining: int = NO_LEADER,
    unclean: bool = False,
    members: bool = False,
    places: Collection[bytes] | None = None,
) -> Slices[list[VersionedRecord]]:
    """Change each partition: the leaving broker out of its ISR, and a leader that may lead.

    unclean: the broker may have lost unsynced records, so it is not eligible either. members: only partitions
    with it in the ISR. places: only those with its replica in one of these directories.
    """
    edits, pace = PartitionEdits(ctx, leaving=leaving, joining=joining), Pace()
    topics, brokers = ctx.image.topics, ctx.image.brokers
    alive = {broker.id for broker in brokers.values() if broker.is_active or broker.id == joining} - {leaving}
    elr = edits.rules.elr
    for topic_id, index in partitions:
        topic = topics[topic_id]
        partition = topic.partitions[index]
        isr = partition.isr
        if (
            (members and leaving not in isr)
            or (places is not None and not _lives_in(partition, leaving, places))
            or (
                # Most partitions without a leader when a broker returns: no in-sync replica is active.
                partition.leader == NO_LEADER
                and leaving not in isr
                and not elr
                and not partition.elr  # an ELR from before the feature was disabled: the change empties it
                and not partition.is_reassigning
                and alive.isdisjoint(isr)
                and edits.election(topic) is Election.ONLINE
            )
        ):
            if pace.spent(1):
                yield
            continue
        edits.change(
            topic,
            index,
            partition,
            election=edits.election(topic),
            isr=tuple([member for member in isr if member != leaving]) if leaving in isr else isr,
            unclean_shutdown=leaving if unclean else NO_LEADER,
        )
        if pace.spent(CHANGE_US):
            yield
    return edits.records
