"""A broker audits and logs what admin clients change: groups, offsets and records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness, records

CALLER = {"principal": "User:ANONYMOUS", "client_id": "test", "host": "127.0.0.1"}


def commit(harness: BrokerHarness, *offsets: int, version: int = 8) -> None:
    """Commit as no member, as an admin client does; partition n gets the nth offset."""
    parts = [
        OffsetCommitRequestPartition(index, offset, committed_metadata="")
        for index, offset in enumerate(offsets)
    ]
    topic_id = harness.node.image.topic_names()["t"]
    named = OffsetCommitRequestTopic("t", topic_id, partitions=parts)
    request = OffsetCommitRequest("g", -1, "", topics=[named])
    answer = harness.client_ask(ApiKey.OFFSET_COMMIT, version, request)
    assert all(one.error_code == 0 for one in answer.topics[0].partitions)


def events(harness: BrokerHarness) -> list[tuple[str, dict[str, Any]]]:
    """The events since the last call; the log has each too."""
    found = [(one.event, one.fields) for one in harness.wire.events]
    harness.wire.events.clear()
    lines = [(text, fields) for _, text, fields in harness.broker_lines.all]
    assert all(one in lines for one in found)
    return found


def with_topic(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.create_topic("t", 3)
    harness.pass_time(100)
    return harness


def test_a_commit_of_no_member_is_audited_if_it_sets_an_offset_back(tmp_path: Path) -> None:
    harness = with_topic(tmp_path)
    for forward in ((5, 5), (5, 9), (7, 9, 1)):
        commit(harness, *forward)
    assert events(harness) == []
    for version in (8, 10):  # by name, and by id
        commit(harness, 7, 3, 1, version=version)
        fields = {"group": "g", "count": 3, "topics": "t", **CALLER, "api": "OFFSET_COMMIT"}
        assert events(harness) == [("offsets set back", fields)]
        commit(harness, 7, 9, 1)


def test_deleted_offsets_and_groups_are_audited_if_they_are_deleted(tmp_path: Path) -> None:
    harness = with_topic(tmp_path)
    commit(harness, 5, 5)
    parts = [OffsetDeleteRequestPartition(0)]
    for group in ("unknown", "g"):
        request = OffsetDeleteRequest(group, [OffsetDeleteRequestTopic("t", parts)])
        harness.client_ask(ApiKey.OFFSET_DELETE, 0, request)
    assert events(harness) == [
        (
            "offsets deleted",
            {"group": "g", "count": 1, "topics": "t", **CALLER, "api": "OFFSET_DELETE"},
        )
    ]
    for names in (("unknown",), ("g", "unknown")):
        harness.client_ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(names))
    assert events(harness) == [
        ("groups deleted", {"count": 1, "groups": "g", **CALLER, "api": "DELETE_GROUPS"})
    ]


def test_deleted_records_are_audited_if_they_are_deleted(tmp_path: Path) -> None:
    harness = with_topic(tmp_path)
    harness.produce("t", records(3))
    for offset in (4, 2):  # the first is out of range
        parts = [DeleteRecordsPartition(0, offset)]
        request = DeleteRecordsRequest([DeleteRecordsTopic("t", parts)], 1_000)
        harness.client_ask(ApiKey.DELETE_RECORDS, 2, request)
    assert events(harness) == [
        ("records deleted", {"count": 1, "topics": "t", **CALLER, "api": "DELETE_RECORDS"})
    ]
