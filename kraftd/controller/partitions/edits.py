"""The changes of partitions in one operation: their rules and their records."""

from __future__ import annotations

from collections.abc import Callable, Container

from msgspec.structs import replace

from kraftd.controller.configs.elr import elr_enabled
from kraftd.controller.configs.values import election_settings
from kraftd.controller.context import Context
from kraftd.controller.partitions.change import Assignment, ChangeRules, Election, partition_change
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import (
    allows_directory_assignment,
    bumps_leader_epoch_on_isr_shrink,
    partition_change_record_version,
)
from kraftd.metadata.state import NO_LEADER, TOPIC_RESOURCE, BrokerState, PartitionState, TopicState
from kraftd.types import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from kraftd.wire.record_frame import VersionedRecord

# Microseconds, for the pace of operations that make very many changes, or name very many topics.
CHANGE_US, TOPIC_US = 7, 2
_ANY_TOPIC = ""  # a name that no topic has: finds the settings of topics without configs
_NOWHERE: frozenset[bytes] = frozenset()


class _AllButLost:
    """The directories of a broker that registered before they had ids (KIP-858): considered online."""

    def __contains__(self, directory: object) -> bool:
        return directory != DIRECTORY_LOST


_ALL_BUT_LOST = _AllButLost()


def online_directories(broker: BrokerState) -> Container[bytes]:
    """The directories in which a broker's replicas may be in sync; an unknown directory counts as online."""
    if not broker.directories:
        return _ALL_BUT_LOST
    return frozenset((*broker.directories, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING))


def leadership(
    image: Image, *, leaving: int = NO_LEADER, joining: int = NO_LEADER
) -> Callable[[int, bytes], bool]:
    """Which brokers may lead by a replica in a directory: an active broker whose directory is online.

    While an operation fences or unfences a broker, the image does not show it yet. Whatever the image says,
    the broker leaving may not lead, and joining may.
    """
    brokers = image.brokers
    online: dict[int, Container[bytes]] = {}

    def may_lead(broker_id: int, directory: bytes) -> bool:
        directories = online.get(broker_id)
        if directories is None:
            broker = brokers.get(broker_id)
            if broker is None or broker_id == leaving or not (broker.is_active or broker_id == joining):
                directories = _NOWHERE
            else:
                directories = online_directories(broker)
            online[broker_id] = directories
        return directory in directories

    return may_lead


def default_directories(image: Image) -> Callable[[int], bytes]:
    """The directory of a broker's new replica: its only one, or unassigned if it has several."""
    if not allows_directory_assignment(image.metadata_version):
        return lambda broker_id: DIRECTORY_MIGRATING
    brokers = image.brokers

    def default_directory(broker_id: int) -> bytes:
        broker = brokers.get(broker_id)
        if broker is None:
            return DIRECTORY_UNASSIGNED
        directories = broker.directories
        if len(directories) == 1:
            return directories[0]
        return DIRECTORY_UNASSIGNED if directories else DIRECTORY_MIGRATING

    return default_directory


class PartitionEdits:
    """Collects the change records of one operation; the image stays as it is."""

    __slots__ = ("_any_topic", "_ctx", "_image", "_settings", "records", "rules")

    def __init__(self, ctx: Context, *, leaving: int = NO_LEADER, joining: int = NO_LEADER) -> None:
        image = ctx.image
        version = image.metadata_version
        self._ctx = ctx
        self._image = image
        self._settings: dict[bytes, tuple[int, bool]] = {}
        self._any_topic: tuple[int, bool] | None = None
        self.records: list[VersionedRecord] = []
        self.rules = ChangeRules(
            may_lead=leadership(image, leaving=leaving, joining=joining),
            default_directory=default_directories(image),
            elr=elr_enabled(ctx),
            directories=allows_directory_assignment(version),
            shrink_bumps_leader_epoch=bumps_leader_epoch_on_isr_shrink(version),
            record_version=partition_change_record_version(version),
        )

    def settings(self, topic: TopicState) -> tuple[int, bool]:
        """A topic's min.insync.replicas, at most its replication factor, and whether it elects uncleanly."""
        settings = self._settings.get(topic.id)
        if settings is None:
            if self._image.config(TOPIC_RESOURCE, topic.name):
                settings = election_settings(self._ctx, topic.name)
            else:
                if self._any_topic is None:
                    self._any_topic = election_settings(self._ctx, _ANY_TOPIC)
                settings = self._any_topic
            # Like Kafka, the replication factor is that of partition 0.
            first = topic.partitions.get(0)
            if first is not None and len(first.replicas) < settings[0]:
                settings = (len(first.replicas), settings[1])
            self._settings[topic.id] = settings
        return settings

    def election(self, topic: TopicState) -> Election:
        """How a topic without a leader elects one: unclean.leader.election.enable decides."""
        return Election.UNCLEAN if self.settings(topic)[1] else Election.ONLINE

    def change(
        self,
        topic: TopicState,
        index: int,
        partition: PartitionState,
        *,
        election: Election = Election.ONLINE,
        isr: tuple[int, ...] | None = None,
        assignment: Assignment | None = None,
        recovery_state: int | None = None,
        directory: tuple[int, bytes] | None = None,
        unclean_shutdown: int = NO_LEADER,
    ) -> PartitionChangeRecord | None:
        """Call partition_change with this operation's rules, and collect the record, if there is one."""
        change = partition_change(
            self.rules,
            topic.id,
            index,
            partition,
            self.settings(topic)[0],
            election=election,
            isr=isr,
            assignment=assignment,
            recovery_state=recovery_state,
            directory=directory,
            unclean_shutdown=unclean_shutdown,
        )
        if change is not None:
            self.records.append(VersionedRecord(change, self.rules.record_version))
        return change

    def repeat(self, change: PartitionChangeRecord, topic: TopicState, index: int) -> None:
        """Collect the record of an equal change to an equal partition, if the topic's settings are equal."""
        again = replace(change, partition_id=index, topic_id=topic.id)
        self.records.append(VersionedRecord(again, self.rules.record_version))

    def __repr__(self) -> str:
        return f"<PartitionEdits {len(self.records)} records>"
