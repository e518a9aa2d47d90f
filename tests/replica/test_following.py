"""The image follows the log: reads, the feature levels for clients, and calls that wait for the load."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.replica.acl_publisher import AclPublisher
from kraftd.replica.effects import MetadataLoaded, ReadCommitted
from kraftd.replica.events import CommittedRead
from kraftd.replica.following import Following
from kraftd.replica.next_slice import NextSlice
from kraftd.replica.replay import READ_BYTES
from kraftd.requests.effects import ScheduleSlice
from kraftd.requests.outbox import Outbox
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_record

LEVEL = FeatureLevelRecord("metadata.version", 30)


def batch(base_offset: int, *messages: Message) -> bytes:
    values = [encode_record(VersionedRecord(message, 0)) for message in messages]
    return build_batch(values, base_offset, 1, 70)


class RecordedFollowing:
    """Following of an empty log; `handled` are calls that waited for the metadata."""

    def __init__(self, snapshot: Any = None, authorizer: Any = None) -> None:
        self.context: Any = SimpleNamespace(image=Image(), now_ms=1_000)
        self.core: Any = SimpleNamespace(high_watermark=None)
        self.handled: list[Any] = []
        self.caught_up = 0
        self.outbox = Outbox()
        boundary: Any = SimpleNamespace(handle=self.handled.append)
        next_slice = NextSlice(self.outbox)
        self.following = Following(
            self.context, self.core, boundary, next_slice, self.outbox, snapshot, authorizer
        )

    def read(self, offset: int, *messages: Message, high_watermark: int) -> list[Any]:
        self.core.high_watermark = high_watermark
        self.following.read_on()
        self.following.take_batches(CommittedRead(offset, batch(offset, *messages)))
        self.following.replay_some(self._catch_up)
        return self.outbox.take()

    def _catch_up(self) -> None:
        self.caught_up += 1


def test_nothing_is_read_before_the_first_commit() -> None:
    harness = RecordedFollowing()
    harness.following.start()
    harness.following.read_on()
    assert harness.outbox.take() == []
    assert harness.following.replay.complete


def test_the_first_committed_levels_complete_the_load_and_answer_calls() -> None:
    harness = RecordedFollowing()
    calls: list[Any] = [SimpleNamespace(connection_id=number) for number in (1, 2, 1)]
    assert not any(harness.following.knows_metadata(call) for call in calls)
    harness.following.abandon(2)
    assert harness.read(0, LEVEL, high_watermark=1) == [ReadCommitted(0, 1, READ_BYTES), MetadataLoaded(1)]
    assert harness.handled == [calls[0], calls[2]] and harness.caught_up == 1
    assert harness.following.finalized_features.epoch == 0
    assert harness.following.knows_metadata(calls[1])
    harness.read(1, TopicRecord("a", bytes(15) + b"\1"), high_watermark=2)
    assert len(harness.handled) == 2 and harness.caught_up == 2


def test_an_incomplete_read_is_followed_by_another() -> None:
    harness = RecordedFollowing()
    made = harness.read(0, LEVEL, high_watermark=3)
    assert made == [ReadCommitted(0, 3, READ_BYTES), ReadCommitted(1, 3, READ_BYTES)]
    assert harness.caught_up == 0 and harness.following.finalized_features.epoch == -1


def test_a_snapshot_at_the_start_is_loaded_in_a_callback_and_timed() -> None:
    harness = RecordedFollowing((OffsetAndEpoch(5, 1), iter([[LEVEL]])))
    harness.following.start()
    assert harness.outbox.take() == [ScheduleSlice()]
    harness.context.now_ms += 30
    harness.core.high_watermark = 5
    harness.following.replay_some(harness._catch_up)
    loading = harness.following.load_progress
    assert (loading.snapshots, loading.snapshot_records) == (1, 1)
    assert loading.snapshot_times.total == 30_000_000
    assert harness.caught_up == 1 and harness.outbox.take() == [MetadataLoaded(5)]


class NotingAuthorizer:
    """An authorizer that keeps its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def begin_load(self) -> None:
        self.calls.append("begin")

    def change(self, removed: Any, added: Any) -> None:
        self.calls.append(([one.resource_name for one in removed], [one.resource_name for one in added]))

    def end_load(self) -> None:
        self.calls.append("end")


def acl(number: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(bytes(15) + bytes([number]), 2, f"t{number}", 3, "User:a", "*", 3, 3)


@pytest.mark.parametrize("transaction", [False, True])
def test_acls_are_passed_to_the_authorizer_once_they_are_committed(transaction: bool) -> None:
    authorizer: Any = NotingAuthorizer()
    publisher, image = AclPublisher(authorizer), Image()
    publisher.follow(image)
    records: list[Any] = [acl(1), acl(2), RemoveAccessControlEntryRecord(acl(1).id)]
    if transaction:
        records = [BeginTransactionRecord(), *records]
    for offset, record in enumerate(records):
        image.apply(record, offset, 1)
    publisher.gather(image, 2 + transaction)
    if transaction:
        assert authorizer.calls == ["begin"]  # an open transaction may still be aborted
        image.apply(EndTransactionRecord(), 4, 1)
        publisher.gather(image, 2 + transaction)
    assert authorizer.calls == ["begin", ([], ["t1", "t2"])]
    publisher.publish(image, 9)
    publisher.publish(image, 9)
    assert authorizer.calls == ["begin", ([], ["t1", "t2"]), (["t1"], []), "end"]


def test_without_an_authorizer_an_image_notes_no_changes() -> None:
    publisher, image = AclPublisher(None), Image()
    publisher.follow(image)
    image.apply(acl(1), 0, 1)
    publisher.publish(image, 9)
    assert not image.acl_changes


def test_acls_that_are_read_reach_the_authorizer_and_are_in_force_once_all_is_read() -> None:
    authorizer: Any = NotingAuthorizer()
    harness = RecordedFollowing(authorizer=authorizer)
    harness.read(0, LEVEL, acl(1), acl(2), high_watermark=4)
    assert authorizer.calls == ["begin", ([], ["t1", "t2"])]
    harness.following.take_batches(CommittedRead(3, batch(3, acl(3))))
    harness.following.replay_some(harness._catch_up)
    assert authorizer.calls == ["begin", ([], ["t1", "t2"]), ([], ["t3"]), "end"]
