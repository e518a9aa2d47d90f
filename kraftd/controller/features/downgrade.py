"""The metadata in force that a lower metadata.version cannot express, and the records that make it fit.

Apache Kafka 4.3 refuses each downgrade across a level at which some record changed (MetadataVersion's
didMetadataChange). Here the metadata decides: if none of it needs the higher level, nothing can be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kraftd.metadata import metadata_version as mv
from kraftd.metadata.features import FEATURES
from kraftd.metadata.image import Image
from kraftd.metadata.snapshot_records import broker_record
from kraftd.metadata.state import BrokerState
from kraftd.types import DIRECTORY_MIGRATING
from kraftd.wire.record_frame import VersionedRecord

MAX_NAMED = 10


def why_not_down(image: Image, level: int, proposed: Mapping[str, int]) -> str | None:
    """The obstacles to a lower metadata.version: the first ten and a count; None without any.

    `proposed` are the new levels of all features.
    """
    if not mv.records_changed_between(image.metadata_version, level):
        return None
    found = list(in_the_way(image, level, proposed))
    if not found:
        return None
    named = "; ".join(found[:MAX_NAMED])
    more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return f"{mv.version_name(level)} cannot carry what is in force: {named}{more}"


def in_the_way(image: Image, level: int, proposed: Mapping[str, int]) -> Iterator[str]:
    """Each thing in force that a metadata.version cannot express, with the way to remove it."""
    for name, feature in FEATURES.items():
        for needed, needed_level in feature.at(proposed.get(name, 0)).needs:
            if needed == mv.METADATA_VERSION and level < needed_level:
                yield f"feature {name} is {proposed[name]} (downgrade it to 0 first)"
    if image.in_transaction and not mv.allows_transactions(level):
        yield "a metadata transaction is open (wait for its end)"
    for _, broker in sorted(image.brokers.items()):
        yield from _of_broker(broker, level)
    if not mv.allows_controller_registration(level):
        for controller_id in sorted(image.controllers):
            yield f"controller {controller_id} is registered"
    if not mv.allows_elr(level):
        for topic_id, index in image.partitions_with_any_elr():
            yield f"partition {_name(image, topic_id)}-{index} has eligible leader replicas"
    if not mv.allows_directory_assignment(level):
        yield from _assigned_directories(image)
    if not mv.allows_delegation_tokens(level):
        for token_id in sorted(image.delegation_tokens):
            yield f"delegation token {token_id} exists (let it expire)"
    if not mv.allows_scram(level):
        for user in sorted({user for _, user in image.scram}):
            yield f"user {user} has SCRAM credentials (delete them)"


def fitting_records(image: Image, level: int) -> Iterator[VersionedRecord]:
    """Registrations rewritten without a field that the metadata.version lacks and that carries no
    information.

    A broker without cordoned directories says so in a field of 4.3-IV0; its absence means the same.
    """
    if mv.allows_cordoned_directories(level):
        return
    for _, broker in sorted(image.brokers.items()):
        if broker.cordoned_directories is not None:
            yield broker_record(replace(broker, cordoned_directories=None), level)


def _of_broker(broker: BrokerState, level: int) -> Iterator[str]:
    if broker.is_migrating_zk and not mv.allows_zk_migration_field(level):
        yield f"broker {broker.id} migrates from ZooKeeper"
    if broker.directories and not mv.allows_directory_assignment(level):
        yield f"broker {broker.id} has reported its log directories"
    if broker.cordoned_directories and not mv.allows_cordoned_directories(level):
        yield f"broker {broker.id} has cordoned directories (empty its cordoned.log.dirs)"


def _assigned_directories(image: Image) -> Iterator[str]:
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            if any(one != DIRECTORY_MIGRATING for one in partition.directories):
                yield f"topic {topic.name} has replicas that are assigned to directories"
                break


def _name(image: Image, topic_id: bytes) -> str:
    topic = image.topic(topic_id)
    return topic_id.hex() if topic is None else topic.name
