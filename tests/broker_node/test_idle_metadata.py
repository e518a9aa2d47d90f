"""A broker is stepped for metadata that may concern it, not for each no-op record of the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.answers.effects import MetadataMoved
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness


class SteppedHarness(BrokerHarness):
    """`moves` counts the steps for moved metadata."""

    moves = 0

    def broker_runs(self) -> SteppedHarness:
        self.run()
        self.pass_time(500)
        handler = self.broker.handlers[MetadataMoved]

        def count(event: Any) -> None:
            self.moves += 1
            handler(event)

        self.broker.handlers[MetadataMoved] = count
        return self

    def write_no_op(self) -> None:
        """Have the controller write one."""
        self.node.periodic.hasten("write a no-op")
        self.advance(0)
        self.timer.run_soon()


@pytest.fixture
def harness(tmp_path: Path) -> SteppedHarness:
    return SteppedHarness(tmp_path, metadata__max__idle__interval__ms=0).broker_runs()


def test_a_no_op_record_is_passed_over(harness: SteppedHarness) -> None:
    before = harness.view.high_watermark
    for _ in range(3):
        harness.write_no_op()
    assert (harness.view.high_watermark - before, harness.moves) == (3, 0)


def test_a_topic_after_no_op_records_is_hosted(harness: SteppedHarness) -> None:
    harness.write_no_op()
    harness.create_topic("t")
    assert harness.moves >= 1 and harness.broker.replicas.get("t", 0) is not None
    harness.write_no_op()  # the topic was followed in more than one callback
    moves = harness.moves
    harness.write_no_op()
    assert harness.moves == moves


def test_changes_that_are_committed_one_after_the_other_are_all_followed(harness: SteppedHarness) -> None:
    """The image had both topics before the first was committed."""
    harness.sync_by_itself = False
    for name in ("a", "b"):
        harness.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name, 1, 1)], 30_000), 8)
        harness.timer.run_soon()
    for _ in range(3):
        harness.sync()
        harness.pass_time(5)
    assert all(harness.broker.replicas.get(name, 0) is not None for name in ("a", "b"))


def test_an_answer_that_waits_for_a_no_op_record_is_released(harness: SteppedHarness) -> None:
    harness.sync_by_itself = False
    harness.write_no_op()
    slot = harness.client_send(ApiKey.METADATA, 12, MetadataRequest(None))
    assert harness.response(slot) is None
    harness.sync()
    harness.pass_time(5)
    assert harness.response(slot) is not None and harness.moves == 1
