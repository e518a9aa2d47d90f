"""Commits of one member over a connection, with other offsets each time, at a whole broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.groups.offsets.repeated_commit import RepeatedCommit
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness

GROUP = "g"


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    found = BrokerHarness(tmp_path).run()
    found.create_topic("t", 2)
    found.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    found.pass_time(100)
    return found


def member(harness: BrokerHarness) -> str:
    """The only member of a group in generation 1."""
    rows = [JoinGroupRequestProtocol("range", b"")]
    begun = JoinGroupRequest(GROUP, 600_000, 600_000, "", None, "consumer", rows)
    begun.member_id = harness.client_ask(ApiKey.JOIN_GROUP, 9, begun).member_id
    slot = harness.client_send(ApiKey.JOIN_GROUP, 9, begun)
    harness.pass_time(5_000)
    assert harness.response(slot).generation_id == 1
    request = SyncGroupRequest(GROUP, 1, begun.member_id, None, "consumer", "range", [])
    assert not harness.client_ask(ApiKey.SYNC_GROUP, 5, request).error_code
    return begun.member_id


def committed(harness: BrokerHarness) -> list[Any]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)])
    (group,) = harness.client_ask(ApiKey.OFFSET_FETCH, 9, request).groups
    return [(row.partition_index, row.committed_offset) for row in group.topics[0].partitions]


def test_the_second_commit_of_a_connection_is_taken_without_being_decoded(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = member(harness)
    taken: list[bool] = []
    take = RepeatedCommit.take

    def noted(self: RepeatedCommit, *arguments: Any) -> bool:
        taken.append(take(self, *arguments))
        return taken[-1]

    monkeypatch.setattr(RepeatedCommit, "take", noted)
    for offset in range(5):
        rows = [OffsetCommitRequestPartition(index, 10 * offset + index) for index in range(2)]
        request = OffsetCommitRequest(GROUP, 1, name, topics=[OffsetCommitRequestTopic("t", partitions=rows)])
        answer = harness.client_ask(ApiKey.OFFSET_COMMIT, 9, request)
        assert [row.error_code for row in answer.topics[0].partitions] == [0, 0]
        assert committed(harness) == [(0, 10 * offset), (1, 10 * offset + 1)]
        harness.pass_time(1_000)
    assert taken == [True] * 4
    harness.delete_topic("t")
    answer = harness.client_ask(ApiKey.OFFSET_COMMIT, 9, request)
    assert [row.error_code for row in answer.topics[0].partitions] == [3, 3]
    assert taken == [True] * 4 + [False]
