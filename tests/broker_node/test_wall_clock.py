"""The wall clock is set, by NTP or by hand: coordinators wait for as long as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness

SESSION_MS, DAY_MS = 6_000, 86_400_000


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    return harness


def ask(harness: BrokerHarness, key: int, version: int, request: Any, wait_ms: int = 100) -> Any:
    slot = harness.client_send(key, version, request)
    harness.pass_time(wait_ms)
    return harness.response(slot)


def beat(harness: BrokerHarness, joined: Any) -> int:
    request = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    return int(ask(harness, ApiKey.HEARTBEAT, 4, request).error_code)


def join(harness: BrokerHarness) -> Any:
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest("g", SESSION_MS, SESSION_MS, "", None, "consumer", protocols)
    joined = ask(harness, ApiKey.JOIN_GROUP, 3, request, 4_000)
    assert not joined.error_code
    sync = SyncGroupRequest("g", joined.generation_id, joined.member_id)
    assert not ask(harness, ApiKey.SYNC_GROUP, 3, sync).error_code
    return joined


@pytest.mark.parametrize("jumped_ms", [DAY_MS, -DAY_MS])
def test_a_member_stays_although_the_clock_was_set(harness: BrokerHarness, jumped_ms: int) -> None:
    joined = join(harness)
    harness.broker.view.context.wall_ahead_ms = jumped_ms
    harness.pass_time(SESSION_MS - 1_000)
    assert beat(harness, joined) == 0


@pytest.mark.parametrize("jumped_ms", [DAY_MS, -DAY_MS])
def test_a_silent_member_goes_in_time_although_the_clock_was_set(
    harness: BrokerHarness, jumped_ms: int
) -> None:
    joined = join(harness)
    harness.broker.view.context.wall_ahead_ms = jumped_ms
    harness.pass_time(SESSION_MS + 1_000)
    assert beat(harness, joined) == ErrorCode.UNKNOWN_MEMBER_ID
