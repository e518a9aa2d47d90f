"""Directories named by `cordoned.log.dirs` take no new logs, and the controller knows them (KIP-1066)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.answers.to_controller import envelope_of
from kraftd.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import parse_response
from tests.broker_node.harness import AT, CONNECTION, IDS, PATHS, BrokerHarness

BROKER = 4


def cordon(harness: BrokerHarness, paths: str | None) -> Any:
    config = AlterableConfig("cordoned.log.dirs", 1 if paths is None else 0, paths)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "100", [config])])
    call = Call(CONNECTION, 0, AT.listener, "127.0.0.1", 44, 1, 1, "test", request)
    answer = harness.ask(ApiKey.ENVELOPE, 0, envelope_of(call), 7)
    harness.pass_time(3_000)
    data = memoryview(answer.response_data)
    return parse_response(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, data)[1].responses[0]


def cordoned(harness: BrokerHarness) -> list[bool]:
    answer = harness.client_ask(ApiKey.DESCRIBE_LOG_DIRS, 5, DescribeLogDirsRequest(None))
    return [one.is_cordoned for one in answer.results]


def parents(harness: BrokerHarness) -> set[str]:
    return {log.parent for log in harness.directories.logs.values()}


@pytest.mark.parametrize("name", [f"{PATHS[0]}/", PATHS[0].removeprefix("/")], ids=["absolute", "relative"])
def test_a_cordoned_directory_gets_no_new_log__kip1066(name: str, tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, broker={"cordoned.log.dirs": name}).run()
    harness.create_topic("t", 4)
    assert parents(harness) == {PATHS[1]} and cordoned(harness) == [True, False]
    assert harness.node.image.brokers[100].cordoned_directories == (IDS[0],)


def test_a_changed_config_cordons_and_uncordons_at_once__kip1066(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    assert cordon(harness, f"{PATHS[1]},/elsewhere").error_code == 0
    harness.create_topic("t", 2)
    assert parents(harness) == {PATHS[0]} and cordoned(harness) == [False, True]
    assert harness.node.image.brokers[100].cordoned_directories == (IDS[1],)
    assert [fields for _, text, fields in harness.broker_lines.all if "not in log.dirs" in text] == [
        {"directories": ["/elsewhere"]}
    ]
    cordon(harness, None)
    harness.create_topic("u", 2)
    assert parents(harness) == set(PATHS) and cordoned(harness) == [False, False]
    assert harness.node.image.brokers[100].cordoned_directories == ()


def test_a_star_cordons_all_directories__kip1066(tmp_path: Path) -> None:
    """The controller then gives this broker no new replica."""
    harness = BrokerHarness(tmp_path).run()
    cordon(harness, "*")
    assert (
        cordoned(harness) == [True, True] and not harness.node.image.brokers[100].has_uncordoned_directory()
    )
    with pytest.raises(AssertionError, match="cordoned"):
        harness.create_topic("t")
