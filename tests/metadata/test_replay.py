"""The effect of single records, and records that contradict the image."""

from __future__ import annotations

import pytest

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.metadata.errors import ReplayError, UnwritableMetadataError
from kraftd.metadata.image import Image
from kraftd.metadata.state import PartitionState
from kraftd.types import DIRECTORY_MIGRATING
from kraftd.wire.message import Message

TOPIC = bytes(15) + b"\x10"
OTHER = bytes(15) + b"\x11"
A, B, C = (b"directory------" + letter for letter in (b"a", b"b", b"c"))


def image_of(*records: Message) -> Image:
    image = Image()
    apply(image, *records)
    return image


def apply(image: Image, *records: Message) -> None:
    for record in records:
        image.apply(record, image.offset + 1, 3)


def one_partition() -> Image:
    partition = PartitionRecord(
        0, TOPIC, (1, 2), (1, 2), leader=1, leader_epoch=4, partition_epoch=9, directories=(A, B)
    )
    return image_of(FeatureLevelRecord("metadata.version", 30), TopicRecord("t", TOPIC), partition)


def changed(**change: object) -> PartitionState:
    """The partition of the image above after one change."""
    image = one_partition()
    apply(image, PartitionChangeRecord(0, TOPIC, **change))  # type: ignore[arg-type]
    return image.topics[TOPIC].partitions[0]


def test_fields_that_a_change_omits_stay_and_the_partition_epoch_increases() -> None:
    before = one_partition().topics[TOPIC].partitions[0]
    after = changed()
    assert after.partition_epoch == before.partition_epoch + 1
    assert (after.leader_epoch, after.isr, after.leader) == (before.leader_epoch, before.isr, before.leader)


def test_a_named_leader_increases_the_leader_epoch_even_if_unchanged() -> None:
    assert changed(leader=2).leader_epoch == 5
    assert changed(leader=1).leader_epoch == 5
    assert changed(leader=-1).leader_epoch == 5
    assert changed(isr=(1,)).leader_epoch == 4


def test_the_recovery_state_changes_only_if_it_is_named__kip704() -> None:
    assert changed(leader_recovery_state=1).leader_recovery_state == 1
    assert changed().leader_recovery_state == 0


def test_new_replicas_have_the_directories_of_the_record__kip858() -> None:
    after = changed(replicas=(2, 3), directories=(B, C), isr=(2,), leader=2)
    assert [after.directory(replica) for replica in after.replicas] == [B, C]
    with pytest.raises(ReplayError, match="2 directories for 3 replicas"):
        changed(replicas=(1, 2, 3))


def test_directories_missing_in_the_record_are_migrating__kip858() -> None:
    image = image_of(TopicRecord("t", TOPIC), PartitionRecord(0, TOPIC, (1, 2), (1, 2)))
    assert image.topics[TOPIC].partitions[0].directories == (DIRECTORY_MIGRATING,) * 2


def test_clearing_the_elr_touches_only_partitions_that_have_one__kip966() -> None:
    image = one_partition()
    with_elr = PartitionRecord(
        1, TOPIC, (1, 2), (1,), leader=1, partition_epoch=0, eligible_leader_replicas=(2,)
    )
    apply(image, with_elr, ClearElrRecord("t"))
    assert image.topics[TOPIC].partitions[0].partition_epoch == 9
    assert image.topics[TOPIC].partitions[1].partition_epoch == 1
    assert image.topics[TOPIC].partitions[1].elr == ()


def test_a_removed_topic_takes_its_partitions_and_configs_with_it() -> None:
    image = one_partition()
    apply(image, ConfigRecord(2, "t", "k", "v"), RemoveTopicRecord(TOPIC))
    assert (image.topic_count, image.partition_count, image.configs) == (0, 0, {})
    assert list(image.partitions_of(1)) == []
    apply(image, TopicRecord("t", OTHER))
    assert image.config(2, "t") == {}


def test_a_change_of_a_broker_sets_only_the_named_fields() -> None:
    image = image_of(RegisterBrokerRecord(broker_id=1, broker_epoch=5, log_dirs=(B, A)))
    assert image.brokers[1].directories == (A, B)
    for change, expected in (
        (BrokerRegistrationChangeRecord(1, 5, -1), (False, False, (A, B), None)),
        (BrokerRegistrationChangeRecord(1, 5, 0, 1), (False, True, (A, B), None)),
        (BrokerRegistrationChangeRecord(1, 5, 0, 0, (A,)), (False, True, (A,), None)),
        (BrokerRegistrationChangeRecord(1, 5, 0, 0, (), (A,)), (False, True, (A,), (A,))),
        (BrokerRegistrationChangeRecord(1, 5, 1), (True, True, (A,), (A,))),
    ):
        apply(image, change)
        broker = image.brokers[1]
        flags = (
            broker.fenced,
            broker.in_controlled_shutdown,
            broker.directories,
            broker.cordoned_directories,
        )
        assert flags == expected


def test_level_0_removes_a_feature_and_kraft_version_is_not_in_the_image() -> None:
    image = image_of(FeatureLevelRecord("group.version", 1), FeatureLevelRecord("kraft.version", 1))
    assert image.features == {"group.version": 1}
    apply(image, FeatureLevelRecord("group.version", 0))
    assert image.features == {}


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (FetchRequest(), "FetchRequest is not a metadata record"),
        (TopicRecord("t", OTHER), "topic t exists already"),
        (TopicRecord("u", TOPIC), "exists already"),
        (RemoveTopicRecord(OTHER), "no topic"),
        (PartitionRecord(0, OTHER), "no topic"),
        (PartitionRecord(-1, TOPIC), "partition -1"),
        (PartitionRecord(1, TOPIC, (1, 2), directories=(A,)), "1 directories for 2 replicas"),
        (PartitionChangeRecord(7, TOPIC), "no partition 7 of topic t"),
        (PartitionChangeRecord(0, OTHER), "no topic"),
        (ClearElrRecord("u"), "no topic u"),
        (FenceBrokerRecord(1, 1), "broker 1 is not registered"),
        (UnregisterBrokerRecord(1, 1), "broker 1 is not registered"),
        (FeatureLevelRecord("metadata.version", 99), "metadata.version 99 is not supported"),
        (FeatureLevelRecord("group.version", 2), "group.version 2 is not supported"),
        (FeatureLevelRecord("next.version", 1), "next.version 1 is not supported"),
        (ProducerIdsRecord(1, 1, -1), "next producer id -1 is not above -1"),
        (RemoveAccessControlEntryRecord(OTHER), "no ACL"),
        (EndTransactionRecord(), "no transaction is open"),
        (AbortTransactionRecord(), "no transaction is open"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_record_that_contradicts_the_image_is_named_with_its_offset(record: Message, text: str) -> None:
    image = one_partition()
    with pytest.raises(ReplayError, match=f"offset 3: .*{text}"):
        apply(image, record)


def test_a_broker_epoch_that_is_not_the_registered_one_contradicts_the_image() -> None:
    image = image_of(RegisterBrokerRecord(broker_id=1, broker_epoch=5))
    with pytest.raises(ReplayError, match="broker 1 has broker epoch 5, not 4"):
        apply(image, FenceBrokerRecord(1, 4))


def test_transactions_do_not_nest__kip868() -> None:
    image = image_of(BeginTransactionRecord())
    with pytest.raises(ReplayError, match="offset 0 is still open"):
        apply(image, BeginTransactionRecord())


def test_undoing_the_end_of_a_transaction_leaves_it_open_for_an_abort() -> None:
    image = image_of(FeatureLevelRecord("metadata.version", 30), BeginTransactionRecord())
    apply(image, TopicRecord("t", TOPIC))
    image.mark()
    apply(image, EndTransactionRecord())
    image.commit(2)
    image.undo_to(2)
    assert image.in_transaction
    apply(image, AbortTransactionRecord())
    assert image == image_of(FeatureLevelRecord("metadata.version", 30))


def test_a_record_without_content_leaves_the_version_of_the_content() -> None:
    image = image_of(FeatureLevelRecord("metadata.version", 30))
    before = image.content_version
    apply(image, NoOpRecord())
    assert (image.offset, image.content_version) == (1, before)
    apply(image, TopicRecord("t", TOPIC))
    assert (image.offset, image.content_version) == (2, before + 1)


def test_a_record_in_place_of_one_that_was_undone_has_another_version() -> None:
    image = image_of(FeatureLevelRecord("metadata.version", 30))
    image.mark()
    apply(image, NoOpRecord(), TopicRecord("t", TOPIC))
    undone = image.content_version
    image.undo_to(0)
    apply(image, TopicRecord("u", OTHER))
    assert image.offset == 1 and image.content_version != undone


def test_a_snapshot_is_not_taken_inside_a_transaction() -> None:
    image = image_of(FeatureLevelRecord("metadata.version", 30), BeginTransactionRecord())
    with pytest.raises(UnwritableMetadataError, match="transaction"):
        list(image.records())


@pytest.mark.parametrize(
    "record", [BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()], ids=repr
)
def test_a_snapshot_with_a_transaction_is_refused__kip868(record: Message) -> None:
    image = Image()
    with pytest.raises(ReplayError, match=r"offset 9: .*TransactionRecord cannot stand in a snapshot"):
        image.apply_all([FeatureLevelRecord("metadata.version", 30), record], 9, 1, of_snapshot=True)
    assert not image.in_transaction


@pytest.mark.parametrize(
    ("record", "level"),
    [
        (RegisterBrokerRecord(broker_id=1, log_dirs=(A,)), 16),
        (RegisterBrokerRecord(broker_id=1, cordoned_log_dirs=()), 29),
        (RegisterBrokerRecord(broker_id=1, is_migrating_zk_broker=True), 7),
    ],
)
def test_a_field_that_the_metadata_version_cannot_carry_is_an_error(record: Message, level: int) -> None:
    image = image_of(FeatureLevelRecord("metadata.version", level), record)
    with pytest.raises(UnwritableMetadataError, match=f"metadata.version {level}"):
        list(image.records())


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    image = image_of(TopicRecord("a.b", TOPIC), TopicRecord("c_d", OTHER))
    assert image.colliding_topic("a_b") == "a.b"
    assert image.colliding_topic("c.d") == "c_d"
    assert image.colliding_topic("a.b") is None
    assert image.colliding_topic("ab") is None
    apply(image, RemoveTopicRecord(TOPIC))
    assert image.colliding_topic("a_b") is None


def test_image_objects_have_a_repr_of_one_line() -> None:
    image = one_partition()
    assert repr(image) == "<Image at 2@3: 0 brokers, 1 topics, 1 partitions, metadata.version 30>"
    assert repr(image.topics[TOPIC].partitions[0]) == (
        "<Partition leader 1 epoch 4, replicas (1, 2), isr (1, 2), partition epoch 9>"
    )
