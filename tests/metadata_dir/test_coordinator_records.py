"""`kraftd dump` of a coordinator's partition says in words what its records mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.groups.records import CoordinatorRecord, encode_record, group_record, offset_record
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.groups.share_state.partition_state import SharePartitionState
from kraftd.groups.share_state.records import snapshot_record, tombstone_record, update_record
from kraftd.groups.share_state.state_batches import StateBatch
from kraftd.groups.transactions.records import expired_record, transaction_record
from kraftd.groups.transactions.states import EMPTY, ONGOING
from kraftd.groups.transactions.transaction import Transaction
from kraftd.log.disk import RealDisk
from kraftd.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraftd.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kraftd.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kraftd.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kraftd.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kraftd.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.messages.share_group_metadata_key import ShareGroupMetadataKey
from kraftd.messages.share_group_metadata_value import ShareGroupMetadataValue
from kraftd.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kraftd.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from kraftd.metadata_dir.showing.dump import Row, dump, verify
from testkit.keyed_batches import keyed_batch, marker_batch

BEGUN_MS = 1_700_000_000_123
TIME = "2023-11-14 22:13:20.123Z"


def rows_of(folder: Path, partition: str, *batches: bytes) -> list[Row]:
    (folder / partition).mkdir()
    path = folder / partition / "00000000000000000000.log"
    path.write_bytes(b"".join(batches))
    return [row for row in dump(RealDisk(), str(path)) if row["kind"] != "batch"]


def transaction(**fields: Any) -> Transaction:
    first = Transaction(7, timeout_ms=60_000, last_update_ms=BEGUN_MS)
    return Transaction(**{name: getattr(first, name) for name in first.__struct_fields__} | fields)


def test_a_transaction_has_state_producer_and_partitions_in_words(tmp_path: Path) -> None:
    open_one = transaction(
        state=ONGOING, producer_epoch=2, partitions=frozenset({("out", 1), ("out", 0)}), start_ms=BEGUN_MS
    )
    states = [transaction_record("pay", transaction(state=EMPTY, producer_epoch=2), 2)]
    states += [transaction_record("pay", open_one, 2), expired_record("old")]
    found = rows_of(
        tmp_path, "__transaction_state-3", keyed_batch([encode_record(one) for one in states], 0, 5, BEGUN_MS)
    )
    assert [row["text"] for row in found] == [
        "pay: Empty, producer 7 of epoch 2",
        f"pay: Ongoing, producer 7 of epoch 2, begun {TIME}, in out-0, out-1",
        "old: has expired",
    ]
    assert [(row["offset"], row["epoch"], row["type"], row["version"]) for row in found] == [
        (0, 5, "TransactionLog", 1),
        (1, 5, "TransactionLog", 1),
        (2, 5, "TransactionLog", 0),
    ]
    assert found[1]["data"]["value"]["transaction_partitions"] == [{"topic": "out", "partition_ids": [0, 1]}]
    assert "value" not in found[2]["data"]


def test_commits_groups_and_ends_of_transactions_are_in_words(tmp_path: Path) -> None:
    value = OffsetCommitValue(17, 3, "", BEGUN_MS)
    member = MemberMetadata("m-1", None, "app", "/10.0.0.1")
    group = GroupMetadataValue("consumer", 4, "range", "m-1", BEGUN_MS, [member])
    plain = [
        offset_record("g", "in", 0, None),
        group_record("g", group),
        CoordinatorRecord(ConsumerGroupMetadataKey("new"), ConsumerGroupMetadataValue(9, 1)),
        group_record("g", None),
    ]
    found = rows_of(
        tmp_path,
        "__consumer_offsets-0",
        keyed_batch([encode_record(offset_record("g", "in", 0, value))], 0, 0, BEGUN_MS, 7, 1),
        marker_batch(1, 7, 1, True, 12),
        keyed_batch([encode_record(one) for one in plain], 2, 0, BEGUN_MS),
    )
    assert [row["text"] for row in found] == [
        f"group g: in-0 at 17 (leader epoch 3), committed {TIME}, pending in a transaction of producer 7",
        "producer 7 of epoch 1 commits, by coordinator epoch 12",
        "group g: in-0 has no offset any more",
        "group g: classic, generation 4, protocol range, members app at /10.0.0.1",
        "group new: consumer group metadata, epoch 9, metadata hash 1",
        "group g: no group metadata any more",
    ]
    assert [row["kind"] for row in found].count("control") == 1


def test_members_of_consumer_groups_have_topics_partitions_and_times_in_words(tmp_path: Path) -> None:
    id = bytes(range(16))
    had, lost = TopicPartitions(id, (0, 2)), TopicPartitions(id, (1,))
    classic = ClassicMemberMetadata(6_000, [ClassicProtocol("range", b"")])
    plain = [
        CoordinatorRecord(
            ConsumerGroupMemberMetadataKey("g", "m"),
            ConsumerGroupMemberMetadataValue(
                "s1", None, "app", "/10.0.0.1", ("in", "audit"), None, 30_000, None, classic
            ),
        ),
        CoordinatorRecord(
            ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
            ConsumerGroupCurrentMemberAssignmentValue(4, 3, 1, [had], [lost]),
        ),
        CoordinatorRecord(
            ConsumerGroupTargetAssignmentMemberKey("g", "m"), ConsumerGroupTargetAssignmentMemberValue([])
        ),
        CoordinatorRecord(
            ConsumerGroupRegularExpressionKey("g", "in.*"),
            ConsumerGroupRegularExpressionValue(("in", "in-2"), 17, BEGUN_MS),
        ),
    ]
    found = rows_of(
        tmp_path, "__consumer_offsets-2", keyed_batch([encode_record(one) for one in plain], 0, 0, BEGUN_MS)
    )
    assert [row["text"] for row in found] == [
        "group g m: consumer group member metadata, instance id s1, client id app, client host /10.0.0.1, "
        "subscribed topic names in; audit, rebalance timeout ms 30000, classic member metadata range",
        "group g m: consumer group current member assignment, member epoch 4, previous member epoch 3, "
        "state to give up partitions, assigned partitions 0, 2 of AAECAwQFBgcICQoLDA0ODw, "
        "partitions pending revocation 1 of AAECAwQFBgcICQoLDA0ODw",
        "group g m: consumer group target assignment member, topic partitions none",
        f"group g in.*: consumer group regular expression, topics in; in-2, version 17, timestamp {TIME}",
    ]


def test_the_state_of_a_share_partition_is_in_words(tmp_path: Path) -> None:
    key = SharePartitionKey("g", bytes(range(16)), 3)
    archived, available = StateBatch(5, 6, 5, 4), StateBatch(9, 9, 1, 0)
    state = SharePartitionState(
        snapshot_epoch=1, state_epoch=2, leader_epoch=4, start_offset=5, batches=(archived, available)
    )
    plain = [snapshot_record(key, state), update_record(key, SharePartitionState()), tombstone_record(key)]
    found = rows_of(
        tmp_path, "__share_group_state-7", keyed_batch([encode_record(one) for one in plain], 0, 0, BEGUN_MS)
    )
    about = "group g: partition 3 of topic AAECAwQFBgcICQoLDA0ODw"
    assert [row["text"] for row in found] == [
        f"{about}, epoch 2, leader epoch 4, done before 5; 5 to 6 archived after 5; 9 to 9 available after 1",
        f"{about}, leader epoch 0",
        f"{about} has no share state any more",
    ]


def test_the_partitions_of_a_share_group_are_in_words(tmp_path: Path) -> None:
    id, key = bytes(16), ShareGroupStatePartitionMetadataKey("g")
    begun, more = TopicPartitionsInfo(id, "orders", (0, 2)), TopicPartitionsInfo(id, "orders", (1,))
    full = ShareGroupStatePartitionMetadataValue([more], [begun], [TopicInfo(id, "audit")])
    plain = [
        CoordinatorRecord(key, full),
        CoordinatorRecord(key, ShareGroupStatePartitionMetadataValue()),
        CoordinatorRecord(key, None),
        CoordinatorRecord(ShareGroupMetadataKey("g"), ShareGroupMetadataValue(3, 7)),
    ]
    found = rows_of(
        tmp_path, "__consumer_offsets-2", keyed_batch([encode_record(one) for one in plain], 0, 0, BEGUN_MS)
    )
    assert [row["text"] for row in found] == [
        "group g: share state of orders-1 to begin; orders-0, orders-2 begun; audit to be forgotten",
        "group g: share state of nothing",
        "group g: no share group state partition metadata any more",
        "group g: share group metadata, epoch 3, metadata hash 7",
    ]


def test_what_cannot_be_read_is_damage_and_a_newer_type_is_not(tmp_path: Path) -> None:
    records = [(b"\x00\x63key", b"\x00\x00"), (b"\x00\x01", b"\x00\x04"), (b"\x00", b"")]
    batch = keyed_batch(records, 0, 0, BEGUN_MS)
    found = rows_of(tmp_path, "__consumer_offsets-1", batch)
    assert [(row["offset"], row["kind"]) for row in found] == [(0, "record"), (1, "damage"), (2, "damage")]
    path = str(tmp_path / "__consumer_offsets-1" / "00000000000000000000.log")
    assert [row["offset"] for row in verify(RealDisk(), path) if path == row["path"]] == [1, 2]
