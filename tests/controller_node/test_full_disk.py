"""A controller with a full disk accepts no changes and loses none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.controller_node.events import DiskFilled, DiskHasRoom
from kraftd.controller_node.registration import UNTIL_SEEN_MS
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path, metadata__max__idle__interval__ms=100).start()
    harness.unfenced(1)
    harness.step(DiskFilled("no room"))
    return harness


def test_writes_are_refused_with_not_controller(harness: Harness) -> None:
    before = harness.node.core.log_end_offset
    answer = harness.answer(harness.create("topic"))
    assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert "disk is full" in answer.topics[0].error_message
    harness.advance(2_000)
    assert harness.node.core.log_end_offset == before, "no-op records are not written either"
    assert "the disk is full: no writes until there is room" in harness.logged_texts


def test_reads_are_still_answered(harness: Harness) -> None:
    assert harness.api_versions().finalized_features_epoch >= 0
    cluster = harness.ask(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2))
    assert cluster.controller_id == 100


def test_with_space_again_writes_are_accepted(harness: Harness) -> None:
    harness.step(DiskHasRoom())
    before = harness.node.core.log_end_offset
    assert harness.answer(harness.create("topic")).topics[0].error_code == ErrorCode.NONE
    harness.advance(2_000)
    assert harness.node.core.log_end_offset > before + 3


def test_no_broker_is_fenced_for_silence_while_the_disk_was_full(harness: Harness) -> None:
    harness.advance(60_000)
    assert not harness.node.image.brokers[1].fenced


def test_a_leader_elected_on_a_full_disk_registers_once_there_is_room(
    harness: Harness, tmp_path: Path
) -> None:
    harness.storage.close()
    again = Harness(tmp_path, harness.disk)
    again.step(DiskFilled("no room"))
    again.start()
    assert again.node.active and again.node.registration.is_due
    again.step(DiskHasRoom())
    again.advance(UNTIL_SEEN_MS)
    assert not again.node.registration.is_due
