"""Random histories: records of every kind, each valid at its position, from one seeded Random."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from kraftd.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.messages.zk_migration_state_record import ZkMigrationStateRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import PartitionState
from kraftd.wire.message import Message

BROKER_IDS = range(1, 6)
NAMES = ("a", "b", "c.d", "c_d", "e")
LATEST = [
    FeatureLevelRecord("metadata.version", 30),
    FeatureLevelRecord("eligible.leader.replicas.version", 1),
]

Maker = Callable[[Image, Random], Message | None]  # None: no record of this kind would be valid here


def next_record(image: Image, random: Random) -> Message:
    """Return a record that is valid after the image."""
    while True:
        record = random.choices(list(MAKERS), weights=list(MAKERS.values()))[0](image, random)
        if record is not None:
            return record


def history(seed: int, count: int) -> list[Message]:
    """Return this many records at metadata.version 30 with ELR, with no transaction open at the end."""
    random = Random(seed)
    image = Image()
    records: list[Message] = []
    while len(records) < count or image.in_transaction:
        record = LATEST[len(records)] if len(records) < len(LATEST) else next_record(image, random)
        image.apply(record, len(records), 1)
        records.append(record)
    return records


def replayed(records: list[Message], *, first_offset: int = 0) -> Image:
    image = Image()
    for number, record in enumerate(records):
        image.apply(record, first_offset + number, 1)
    return image


def _uuid(random: Random) -> bytes:
    return bytes([random.randint(1, 255)]) + random.randbytes(15)  # none of the reserved ids


def _register_broker(image: Image, random: Random) -> Message:
    broker_id = random.choice(BROKER_IDS)
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=_uuid(random),
        broker_epoch=image.offset + 1,
        end_points=[
            BrokerEndpoint("PLAINTEXT", f"host{broker_id}", 9092, 0),
            BrokerEndpoint("X", "h", 65_535, 3),
        ],
        features=[BrokerFeature("metadata.version", 7, 30), BrokerFeature("group.version", 0, 1)],
        rack=random.choice((None, "r1", "")),
        fenced=random.random() < 0.7,
        in_controlled_shutdown=random.random() < 0.1,
        log_dirs=tuple(_uuid(random) for _ in range(random.randint(0, 3))),
        cordoned_log_dirs=random.choice((None, (), (_uuid(random),))),
    )


def _broker(image: Image, random: Random) -> tuple[int, int] | None:
    if not image.brokers:
        return None
    broker = image.brokers[random.choice(sorted(image.brokers))]
    return broker.id, broker.epoch


def _unregister_broker(image: Image, random: Random) -> Message | None:
    broker = _broker(image, random)
    return broker and UnregisterBrokerRecord(*broker)


def _fence(image: Image, random: Random) -> Message | None:
    broker = _broker(image, random)
    return broker and random.choice((FenceBrokerRecord, UnfenceBrokerRecord))(*broker)


def _change_broker(image: Image, random: Random) -> Message | None:
    broker = _broker(image, random)
    return broker and BrokerRegistrationChangeRecord(
        *broker,
        fenced=random.choice((-1, 0, 1)),
        in_controlled_shutdown=random.choice((0, 0, 1)),
        log_dirs=tuple(_uuid(random) for _ in range(random.randint(0, 2))),
        cordoned_log_dirs=random.choice((None, (), (_uuid(random),))),
    )


def _register_controller(_image: Image, random: Random) -> Message:
    endpoints = [ControllerEndpoint("CONTROLLER", "c", random.randint(1, 9), 0)]
    features = [ControllerFeature("metadata.version", 7, 30)]
    return RegisterControllerRecord(random.randint(100, 102), _uuid(random), False, endpoints, features)


def _feature(_image: Image, random: Random) -> Message:
    name = random.choice(("transaction.version", "group.version", "kraft.version"))
    return FeatureLevelRecord(name, random.choice((0, 1)))


def _producer_ids(image: Image, random: Random) -> Message:
    return ProducerIdsRecord(1, 1, max(image.next_producer_id, 0) + random.choice((1, 1000)))


def _nothing(_image: Image, random: Random) -> Message:
    return random.choice((NoOpRecord, ZkMigrationStateRecord))()


def _transaction(image: Image, random: Random) -> Message:
    if image.in_transaction:
        return random.choice((EndTransactionRecord, AbortTransactionRecord))()
    return BeginTransactionRecord("t")


def _add_topic(image: Image, random: Random) -> Message | None:
    name = random.choice(NAMES)
    return None if image.topic_named(name) else TopicRecord(name, _uuid(random))


def _topic_id(image: Image, random: Random) -> bytes | None:
    return random.choice(sorted(image.topics)) if image.topics else None


def _remove_topic(image: Image, random: Random) -> Message | None:
    topic_id = _topic_id(image, random)
    return topic_id and RemoveTopicRecord(topic_id)


def _replicas(random: Random) -> tuple[int, ...]:
    return tuple(random.sample(BROKER_IDS, random.randint(1, 3)))


def _some(random: Random, of: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(random.sample(of, random.randint(0, len(of))))


def _add_partition(image: Image, random: Random) -> Message | None:
    topic_id = _topic_id(image, random)
    if topic_id is None:
        return None
    replicas = _replicas(random)
    return PartitionRecord(
        partition_id=random.choice((0, 1, 2, 70)),
        topic_id=topic_id,
        replicas=replicas,
        isr=_some(random, replicas),
        removing_replicas=_some(random, replicas) if random.random() < 0.2 else (),
        adding_replicas=_some(random, replicas) if random.random() < 0.2 else (),
        leader=random.choice((-1, *replicas)),
        leader_recovery_state=random.choice((0, 0, 1)),
        leader_epoch=random.randint(0, 5),
        partition_epoch=random.randint(0, 5),
        directories=random.choice(((), tuple(_uuid(random) for _ in replicas))),
        eligible_leader_replicas=random.choice((None, _some(random, replicas))),
        last_known_elr=random.choice((None, _some(random, replicas))),
    )


def _change_partition(image: Image, random: Random) -> Message | None:
    where = [
        (topic_id, index) for topic_id in sorted(image.topics) for index in image.topics[topic_id].partitions
    ]
    if not where:
        return None
    topic_id, index = random.choice(where)
    before = image.partition(topic_id, index)
    assert isinstance(before, PartitionState)
    replicas = before.replicas
    record = PartitionChangeRecord(index, topic_id)
    moved = random.random() < 0.3
    if moved:  # ISR, ELR and leader are always replicas (C4)
        record.replicas = replicas = _replicas(random)
        record.directories = tuple(_uuid(random) for _ in replicas)
        record.leader = random.choice(replicas)
    elif random.random() < 0.2:
        record.directories = tuple(_uuid(random) for _ in replicas)
    if random.random() < 0.4:
        record.leader = random.choice((-1, *replicas))
    lists = ("isr", "removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr")
    for name in lists:
        if moved or random.random() < 0.3:
            setattr(record, name, _some(random, replicas))
    if random.random() < 0.05:  # Kafka may elect a replica that a reassignment has just removed
        record.isr, record.leader = (0,), 0
    record.leader_recovery_state = random.choice((-1, -1, 0, 1))
    return record


def _clear_elr(image: Image, random: Random) -> Message | None:
    topic_id = _topic_id(image, random)
    return topic_id and ClearElrRecord(random.choice(("", image.topics[topic_id].name)))


def _config(_image: Image, random: Random) -> Message:
    kind, name = random.choice(((2, "a"), (2, "e"), (4, ""), (4, "1"), (32, "group"), (16, "metrics")))
    key = random.choice(("retention.ms", "min.insync.replicas"))
    return ConfigRecord(kind, name, key, random.choice((None, "1", "2", "")))


def _quota(_image: Image, random: Random) -> Message:
    entity = [
        EntityData("user", random.choice((None, "u"))),
        EntityData("client-id", random.choice((None, "c"))),
    ]
    entity = random.sample(entity, random.randint(1, 2))
    key = random.choice(("producer_byte_rate", "request_percentage"))
    return ClientQuotaRecord(entity, key, random.choice((0.5, 100.0)), random.random() < 0.3)


def _acl(image: Image, random: Random) -> Message:
    if image.acls and random.random() < 0.4:
        return RemoveAccessControlEntryRecord(random.choice(sorted(image.acls)))
    operation, permission = random.randint(2, 12), random.randint(2, 3)
    return AccessControlEntryRecord(_uuid(random), 2, "topic", 3, "User:u", "*", operation, permission)


def _scram(image: Image, random: Random) -> Message:
    if image.scram and random.random() < 0.4:
        mechanism, user = random.choice(sorted(image.scram))
        return RemoveUserScramCredentialRecord(user, mechanism)
    return UserScramCredentialRecord(
        random.choice("uv"), random.randint(1, 2), b"salt", b"stored", b"server", 4096
    )


def _token(image: Image, random: Random) -> Message:
    if image.delegation_tokens and random.random() < 0.4:
        return RemoveDelegationTokenRecord(random.choice(sorted(image.delegation_tokens)))
    issued = random.randint(1, 9)
    return DelegationTokenRecord("User:o", "User:r", ["User:n"], issued, 20, 10, random.choice(("t1", "t2")))


MAKERS: dict[Maker, int] = {
    _register_broker: 6,
    _unregister_broker: 1,
    _fence: 3,
    _change_broker: 3,
    _register_controller: 1,
    _feature: 1,
    _producer_ids: 1,
    _nothing: 1,
    _transaction: 3,
    _add_topic: 4,
    _remove_topic: 1,
    _add_partition: 12,
    _change_partition: 20,
    _clear_elr: 1,
    _config: 4,
    _quota: 2,
    _acl: 2,
    _scram: 2,
    _token: 2,
}
