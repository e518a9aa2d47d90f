"""kraftd controllers with one of Kafka 4.0, which uses Fetch v17 only: either leads (KIP-1166)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.wire.api import ApiKey
from testkit.client import Client
from testkit.node import Controller
from testkit.process import HOST
from testkit.quorum import Quorum

pytestmark = pytest.mark.kafka

BROKER = 4  # the type of a config resource; the name "" is every broker's default


def change_configs(leader: Controller, count: int) -> None:
    with Client(HOST, leader.port) as client:
        for value in range(count):
            config = AlterableConfig("log.cleaner.threads", 0, str(value + 1))
            resource = AlterConfigsResource(BROKER, "", [config])
            answer = client.call(IncrementalAlterConfigsRequest([resource]), 1)
            assert answer.responses[0].error_code == 0


def test_an_observer_follows_a_leader_that_speaks_fetch_v17_only__kip1166(tmp_path: Path) -> None:
    with Quorum(tmp_path, {100: "apache"}) as quorum:
        leader = quorum.controllers[100]
        leader.release = "4.0.0"
        quorum.start_controllers()
        quorum.add_observer(101, "kraftd")  # thus it serves finalized features
        with Client(HOST, leader.port) as client:
            offered = client.call(ApiVersionsRequest("test", "1"), version=4).api_keys
            assert {one.api_key: one.max_version for one in offered}[ApiKey.FETCH] == 17
        change_configs(leader, 20)
        quorum.wait_until_observer_is_level(101)
        quorum.stop_all()
        assert quorum.assert_equal_logs() > 20


def test_two_voters_of_which_one_speaks_fetch_v17_only_need_each_other__kip1166(tmp_path: Path) -> None:
    """Each record needs both to be committed, whichever leads."""
    with Quorum(tmp_path, {100: "apache", 101: "kraftd"}) as quorum:
        quorum.controllers[100].release = "4.0.0"
        voters = ("--initial-controllers", quorum.initial)
        for controller in quorum.controllers.values():
            controller.format(quorum.cluster_id, *voters, "--release-version", "4.0")
        quorum.start_controllers()
        for leader in (101, 100, 101):
            quorum.make_lead(leader)
            change_configs(quorum.controllers[leader], 20)
        quorum.wait_for_voters(100, 101)
        quorum.stop_all()
        assert quorum.assert_equal_logs() > 60
