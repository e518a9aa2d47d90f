"""OffsetForLeaderEpoch (KIP-320): a lagging replica does not report a truncation to a consumer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.client.metadata_cache import Leader
from kraftd.client.position import Position, State
from kraftd.host.cluster_view import NodeView
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.messages.offset_for_leader_epoch_response import EpochEndOffset
from kraftd.metadata.state import ControllerState
from kraftd.types import METADATA_TOPIC, Endpoint
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import CLIENT, ClientHarness

OTHER = 3000  # a controller without a listener for clients: this node is named as the leader


@pytest.fixture
def harness(tmp_path: Path) -> ClientHarness:
    """A leader in its second epoch, with committed records of both."""
    former = ClientHarness(tmp_path)
    former.start()
    former.unfenced(1)
    former.storage.close()
    restarted = ClientHarness(tmp_path, disk=former.disk)
    restarted.start()
    assert restarted.view.high_watermark == restarted.view.log_end_offset
    return restarted


def end_of(harness: ClientHarness, epoch: int) -> EpochEndOffset:
    partition = OffsetForLeaderPartition(0, -1, epoch)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(METADATA_TOPIC, [partition])])
    (topic,) = harness.client_ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics
    (end,) = topic.partitions
    assert isinstance(end, EpochEndOffset)
    return end


def test_standby_named_as_leader_reports_no_end_of_the_current_epoch(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeView, "leader_id", OTHER)
    epoch = harness.view.epoch
    end = end_of(harness, epoch)
    assert end.error_code == 0
    position = Position("read-elsewhere", harness.view.log_end_offset + 1_000, epoch)
    leader = Leader(100, epoch)
    assert position.metadata_changed(leader) is State.VALIDATING
    assert position.validated(leader, end.leader_epoch, end.end_offset) is State.FETCHING


def test_replica_reports_an_epochs_end_once_later_records_are_committed(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = harness.view.epoch
    by_the_leader = end_of(harness, epoch - 1)
    assert by_the_leader.leader_epoch == epoch - 1
    assert 0 < by_the_leader.end_offset < harness.view.high_watermark
    monkeypatch.setattr(NodeView, "leader_id", OTHER)
    assert end_of(harness, epoch - 1) == by_the_leader
    monkeypatch.setattr(NodeView, "high_watermark", by_the_leader.end_offset)
    assert end_of(harness, epoch - 1).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_replica_that_lags_behind_an_election_reports_no_end(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = harness.view.epoch
    monkeypatch.setattr(NodeView, "leader_id", OTHER)
    assert end_of(harness, epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    monkeypatch.setattr(NodeView, "epoch", epoch + 1)  # known from a vote; none of its records is here yet
    assert end_of(harness, epoch).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_node_that_metadata_does_not_name_as_the_leader_refuses(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ControllerState(OTHER, bytes(16), listeners=(Endpoint(CLIENT, "127.0.0.1", 9192),))
    monkeypatch.setitem(harness.node.image.controllers, OTHER, other)  # type: ignore[arg-type]
    monkeypatch.setattr(NodeView, "voter_ids", [100, OTHER])
    for leader_id in (OTHER, None):
        monkeypatch.setattr(NodeView, "leader_id", leader_id)
        for epoch in (harness.view.epoch - 1, harness.view.epoch):
            assert end_of(harness, epoch).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
