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
from tests.client_node.clients import CLIENT, ClientHouse

OTHER = 3000  # a controller without a listener for clients: this node is named as the leader


@pytest.fixture
def house(tmp_path: Path) -> ClientHouse:
    """A leader in its second epoch, with committed records of both."""
    former = ClientHouse(tmp_path)
    former.start()
    former.unfenced(1)
    former.storage.close()
    restarted = ClientHouse(tmp_path, disk=former.disk)
    restarted.start()
    assert restarted.view.high_watermark == restarted.view.log_end_offset
    return restarted


def end_of(house: ClientHouse, epoch: int) -> EpochEndOffset:
    partition = OffsetForLeaderPartition(0, -1, epoch)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(METADATA_TOPIC, [partition])])
    (topic,) = house.client_ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics
    (end,) = topic.partitions
    assert isinstance(end, EpochEndOffset)
    return end


def test_standby_named_as_leader_reports_no_end_of_the_current_epoch(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeView, "leader_id", OTHER)
    epoch = house.view.epoch
    end = end_of(house, epoch)
    assert end.error_code == 0
    position = Position("read-elsewhere", house.view.log_end_offset + 1_000, epoch)
    leader = Leader(100, epoch)
    assert position.metadata_changed(leader) is State.VALIDATING
    assert position.validated(leader, end.leader_epoch, end.end_offset) is State.FETCHING


def test_replica_reports_an_epochs_end_once_later_records_are_committed(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = house.view.epoch
    by_the_leader = end_of(house, epoch - 1)
    assert by_the_leader.leader_epoch == epoch - 1
    assert 0 < by_the_leader.end_offset < house.view.high_watermark
    monkeypatch.setattr(NodeView, "leader_id", OTHER)
    assert end_of(house, epoch - 1) == by_the_leader
    monkeypatch.setattr(NodeView, "high_watermark", by_the_leader.end_offset)
    assert end_of(house, epoch - 1).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_replica_that_lags_behind_an_election_reports_no_end(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = house.view.epoch
    monkeypatch.setattr(NodeView, "leader_id", OTHER)
    assert end_of(house, epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    monkeypatch.setattr(NodeView, "epoch", epoch + 1)  # known from a vote; none of its records is here yet
    assert end_of(house, epoch).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_node_that_metadata_does_not_name_as_the_leader_refuses(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ControllerState(OTHER, bytes(16), listeners=(Endpoint(CLIENT, "127.0.0.1", 9192),))
    monkeypatch.setitem(house.node.image.controllers, OTHER, other)  # type: ignore[arg-type]
    monkeypatch.setattr(NodeView, "voter_ids", [100, OTHER])
    for leader_id in (OTHER, None):
        monkeypatch.setattr(NodeView, "leader_id", leader_id)
        for epoch in (house.view.epoch - 1, house.view.epoch):
            assert end_of(house, epoch).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
