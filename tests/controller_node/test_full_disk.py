"""A controller with a full disk accepts no changes and loses none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.controller_node.events import DiskFilled, DiskHasRoom
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path, metadata__max__idle__interval__ms=100).start()
    house.unfenced(1)
    house.step(DiskFilled("no room"))
    return house


def test_writes_are_refused_with_not_controller(house: House) -> None:
    before = house.node.core.log_end_offset
    answer = house.answer(house.create("topic"))
    assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert "disk is full" in answer.topics[0].error_message
    house.advance(2_000)
    assert house.node.core.log_end_offset == before, "no-op records are not written either"
    assert "the disk is full: no writes until there is room" in house.logged_texts


def test_reads_are_still_answered(house: House) -> None:
    assert house.api_versions().finalized_features_epoch >= 0
    cluster = house.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
    assert cluster.controller_id == 100


def test_with_space_again_writes_are_accepted(house: House) -> None:
    house.step(DiskHasRoom())
    before = house.node.core.log_end_offset
    assert house.answer(house.create("topic")).topics[0].error_code == ErrorCode.NONE
    house.advance(2_000)
    assert house.node.core.log_end_offset > before + 3


def test_no_broker_is_fenced_for_silence_while_the_disk_was_full(house: House) -> None:
    house.advance(60_000)
    assert not house.node.image.brokers[1].fenced
