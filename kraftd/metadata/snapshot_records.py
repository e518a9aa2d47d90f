"""The image written back as records, for a snapshot.

The order of kinds is Kafka's: features, cluster, topics, configs, quotas, producer ids, ACLs, SCRAM, tokens.
metadata.version is first because it says how to read the rest. Each kind is sorted, so that equal images give
equal bytes on every node. State that a metadata.version cannot express is an error, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.messages import register_broker_record, register_controller_record
from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.access_records import acl_record, token_record
from kraftd.metadata.errors import UnwritableMetadataError
from kraftd.metadata.state import BrokerState, ControllerState, PartitionState
from kraftd.metadata.tables import Tables
from kraftd.types import DIRECTORY_MIGRATING
from kraftd.wire.record_frame import VersionedRecord

ELR_VERSION = "eligible.leader.replicas.version"


def snapshot_records(tables: Tables) -> Iterator[VersionedRecord]:
    """Every record of the image, lazily; the image must not change meanwhile.

    Raises UnwritableMetadataError if there is something to write but no metadata.version yet, if a
    transaction is open, or if the metadata.version cannot express something.
    """
    if tables.in_transaction:
        raise UnwritableMetadataError(f"the transaction of offset {tables.transaction_offset} is open")
    if mv.METADATA_VERSION in tables.features:
        yield VersionedRecord(FeatureLevelRecord(mv.METADATA_VERSION, tables.metadata_version), 0)
    for name in sorted(tables.features):
        if name != mv.METADATA_VERSION:
            yield VersionedRecord(FeatureLevelRecord(name, tables.features[name]), 0)
    yield from _cluster(tables)
    yield from _topics(tables)
    yield from _configs_and_quotas(tables)
    if tables.next_producer_id >= 0:
        yield VersionedRecord(ProducerIdsRecord(-1, -1, tables.next_producer_id), 0)
    yield from _access(tables)


def broker_record(broker: BrokerState, level: int) -> VersionedRecord:
    """The whole registration as a record of a metadata.version.  Raises UnwritableMetadataError."""
    if broker.is_migrating_zk and not mv.allows_zk_migration_field(level):
        raise _lost(level, f"that broker {broker.id} is migrating from ZooKeeper")
    if broker.directories and not mv.allows_directory_assignment(level):
        raise _lost(level, f"the directories of broker {broker.id}")
    if broker.cordoned_directories is not None and not mv.allows_cordoned_directories(level):
        raise _lost(level, f"the cordoned directories of broker {broker.id}")
    record = RegisterBrokerRecord(
        broker.id,
        broker.is_migrating_zk,
        broker.incarnation_id,
        broker.epoch,
        [register_broker_record.BrokerEndpoint(*endpoint) for endpoint in broker.listeners],
        [
            register_broker_record.BrokerFeature(name, low, high)
            for name, (low, high) in sorted(broker.features.items())
        ],
        broker.rack,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.directories,
        broker.cordoned_directories,
    )
    return VersionedRecord(record, mv.register_broker_record_version(level))


def controller_record(controller: ControllerState, level: int) -> VersionedRecord:
    if not mv.allows_controller_registration(level):
        raise _lost(level, f"the registration of controller {controller.id}")
    record = RegisterControllerRecord(
        controller.id,
        controller.incarnation_id,
        controller.zk_migration_ready,
        [register_controller_record.ControllerEndpoint(*endpoint) for endpoint in controller.listeners],
        [
            register_controller_record.ControllerFeature(name, low, high)
            for name, (low, high) in sorted(controller.features.items())
        ],
    )
    return VersionedRecord(record, 0)


def partition_record(
    topic_id: bytes, index: int, partition: PartitionState, level: int, *, elr_enabled: bool
) -> VersionedRecord:
    """The whole partition as a record of a metadata.version.  Raises UnwritableMetadataError."""
    directories = partition.directories
    if not mv.allows_directory_assignment(level):
        if any(directory != DIRECTORY_MIGRATING for directory in directories):
            raise _lost(level, "the directories of replicas")
        directories = ()
    elr = last_known_elr = None
    if elr_enabled:
        elr, last_known_elr = partition.elr or None, partition.last_known_elr or None
    record = _record(topic_id, index, partition, directories, elr, last_known_elr)
    return VersionedRecord(record, mv.partition_record_version(level))


def _record(
    topic_id: bytes,
    index: int,
    partition: PartitionState,
    directories: tuple[bytes, ...],
    elr: tuple[int, ...] | None = None,
    last_known_elr: tuple[int, ...] | None = None,
) -> PartitionRecord:
    return PartitionRecord(
        index,
        topic_id,
        partition.replicas,
        partition.isr,
        partition.removing_replicas,
        partition.adding_replicas,
        partition.leader,
        partition.leader_recovery_state,
        partition.leader_epoch,
        partition.partition_epoch,
        directories,
        elr,
        last_known_elr,
    )


def _cluster(tables: Tables) -> Iterator[VersionedRecord]:
    for _, broker in sorted(tables.brokers.items()):
        yield broker_record(broker, tables.metadata_version)
    for _, controller in sorted(tables.controllers.items()):
        yield controller_record(controller, tables.metadata_version)


def _topics(tables: Tables) -> Iterator[VersionedRecord]:
    level = tables.metadata_version
    # The ELR of an image without the feature is dropped, as Kafka's snapshots do.
    elr_enabled = tables.features.get(ELR_VERSION, 0) >= 1
    with_directories = mv.allows_directory_assignment(level)
    version = mv.partition_record_version(level)
    for topic_id in sorted(tables.topics):
        topic = tables.topics[topic_id]
        yield VersionedRecord(TopicRecord(topic.name, topic_id), 0)
        for index, partition in sorted(topic.partitions.items()):
            if with_directories and not elr_enabled:  # the record loses nothing
                yield VersionedRecord(_record(topic_id, index, partition, partition.directories), version)
            else:
                yield partition_record(topic_id, index, partition, level, elr_enabled=elr_enabled)


def _configs_and_quotas(tables: Tables) -> Iterator[VersionedRecord]:
    for kind, name in sorted(tables.configs):
        for key, value in sorted(tables.configs[kind, name].items()):
            yield VersionedRecord(ConfigRecord(kind, name, key, value), 0)
    for entity in sorted(tables.quotas, key=_none_first):
        data = [EntityData(entity_type, entity_name) for entity_type, entity_name in entity]
        for key, number in sorted(tables.quotas[entity].items()):
            yield VersionedRecord(ClientQuotaRecord(data, key, number, False), 0)


def _none_first(entity: tuple[tuple[str, str | None], ...]) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in entity]


def _access(tables: Tables) -> Iterator[VersionedRecord]:
    level = tables.metadata_version
    for acl_id, acl in sorted(tables.acls.items(), key=lambda item: item[0]):
        yield acl_record(acl_id, acl)
    if tables.scram and not mv.allows_scram(level):
        raise _lost(level, "SCRAM credentials")
    for mechanism, user in sorted(tables.scram):
        scram = tables.scram[mechanism, user]
        yield VersionedRecord(
            UserScramCredentialRecord(
                user, mechanism, scram.salt, scram.stored_key, scram.server_key, scram.iterations
            ),
            0,
        )
    if tables.delegation_tokens and not mv.allows_delegation_tokens(level):
        raise _lost(level, "delegation tokens")
    for token_id, token in sorted(tables.delegation_tokens.items(), key=lambda item: item[0]):
        yield token_record(token_id, token)


def _lost(level: int, metadata: str) -> UnwritableMetadataError:
    return UnwritableMetadataError(
        f"metadata.version {level} ({mv.version_name(level)}) cannot carry {metadata}"
    )
