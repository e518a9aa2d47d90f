"""A heartbeat of a member with very many partitions: its broker divides them in slices first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.groups.consumer import heartbeat, reconciling
from kraftd.groups.consumer.gathering import ALONE_MS
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness
from tests.groups.consumer.members import Consumer
from tests.groups.consumer.test_bounded_steps import without_pause


def test_a_member_gives_up_partitions_after_slices__kip848(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "MANY", 5)
    monkeypatch.setattr(reconciling, "PARTITIONS_A_SLICE", 4)
    monkeypatch.setattr(heartbeat, "MANY", 2)
    answer = Boundary.answer

    def answered_at_once(boundary: Boundary, call: Call, response: Any) -> None:
        has_many = isinstance(response, ConsumerGroupHeartbeatResponse) and heartbeat.has_many(response)
        assert not has_many, "a long answer is encoded with the step that appends its record"
        answer(boundary, call, response)

    monkeypatch.setattr(Boundary, "answer", answered_at_once)
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 1)
    harness.create_topic("t", 6)
    harness.pass_time(10)

    def ask(request: Any, version: int) -> Any:
        slot = harness.client_send(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        harness.pass_time(10 + ALONE_MS)
        return harness.response(slot)

    first, second = Consumer(ask, "m0", topics=("t",)), Consumer(ask, "m1", topics=("t",))
    first.join()
    harness.pass_time(2_000)  # until another target may be computed
    second.join()
    monkeypatch.setattr(reconciling, "at_once", without_pause)
    for one in (first, first, second):
        assert one.beat().error_code == 0
    assert sorted(index for one in (first, second) for had in one.has.values() for index in had) == [
        *range(6)
    ]
    assert first.count() == 3
