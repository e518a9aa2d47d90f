"""The share coordinator of a broker: found by keys, its topic made on demand, loaded and pruned (KIP-932)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.answers.effects import MetadataMoved
from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from kraftd.messages.initialize_share_group_state_request import PartitionData as Initialization
from kraftd.messages.read_share_group_state_summary_request import (
    PartitionData as Reading,
)
from kraftd.messages.read_share_group_state_summary_request import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import uuid_text
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness

TOPIC = "__share_group_state"
PRUNE_MS = 300_000


def find(harness: BrokerHarness, key: str, version: int = 6) -> Any:
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=(key,))
    return harness.client_ask(ApiKey.FIND_COORDINATOR, version, request).coordinators[0]


def topic_id(harness: BrokerHarness) -> bytes:
    return harness.view.image.topic_names()["t"]


def initialize(harness: BrokerHarness, start: int) -> int:
    topics = [InitializeStateData(topic_id(harness), [Initialization(0, 1, start)])]
    request = InitializeShareGroupStateRequest("g", topics)
    answer = harness.client_ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
    error: int = answer.results[0].partitions[0].error_code
    return error


def summary(harness: BrokerHarness) -> tuple[int, int]:
    request = ReadShareGroupStateSummaryRequest(
        "g", [ReadStateSummaryData(topic_id(harness), [Reading(0, -1)])]
    )
    answer = harness.client_ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, request)
    row = answer.results[0].partitions[0]
    return row.error_code, row.start_offset


def test_who_may_find_share_partitions_is_asked_of_versions_that_know_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.end_load()
    monkeypatch.setattr(harness.broker.boundary, "_authorizer", authorizer)
    key = f"g:{uuid_text(topic_id(harness))}:0"
    assert find(harness, key, 5).error_code == ErrorCode.INVALID_REQUEST
    denied = find(harness, key)
    assert (denied.key, denied.error_code) == (key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert (denied.node_id, denied.port) == (-1, -1) and denied.error_message  # no broker 0
    nothing = FindCoordinatorRequest(key_type=2, coordinator_keys=())
    assert harness.client_ask(ApiKey.FIND_COORDINATOR, 6, nothing).coordinators == []


def test_the_topic_is_made_when_a_share_partition_is_looked_for(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    key = f"g:{uuid_text(topic_id(harness))}:0"
    assert find(harness, key, 5).error_code == ErrorCode.INVALID_REQUEST
    assert find(harness, "g:0").error_code == ErrorCode.INVALID_REQUEST
    assert not harness.wire.sent or TOPIC not in repr(harness.wire.sent[-1])
    assert find(harness, key).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (asked,) = [message for message in harness.wire.sent if isinstance(message, CreateTopicsRequest)]
    (row,) = asked.topics
    assert (row.name, row.num_partitions, row.replication_factor) == (TOPIC, 50, 3)
    assert {config.name: config.value for config in row.configs} == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
    harness.create_topic(TOPIC, 3)
    found = find(harness, key)
    assert (found.error_code, found.node_id, found.key) == (0, 100, key)


def test_the_state_of_share_groups_outlives_a_restart_and_pruning(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t")
    assert initialize(before, 1) == ErrorCode.NOT_COORDINATOR
    before.create_topic(TOPIC, 1)
    before.pass_time(100)
    for start in range(5):
        assert initialize(before, start) == 0
    hosted = before.broker.replicas.get(TOPIC, 0)
    assert hosted is not None and hosted.partition is not None
    before.pass_time(PRUNE_MS + 1_000)
    assert hosted.partition.log_start_offset == 4
    before.executor.close_files()
    before.disk.locked.clear()
    after = BrokerHarness(tmp_path, before.disk)
    after.clock.ms = before.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert summary(after) == (0, 4)


def test_share_partitions_go_with_their_topic(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    harness.create_topic(TOPIC, 1)
    harness.pass_time(100)
    assert initialize(harness, 7) == 0
    shard = harness.broker.coordinators.share_states.coordinator.shards[0]
    assert len(shard.states) == 1
    harness.delete_topic("t")
    harness.pass_time(100)
    assert not shard.states


def ask(harness: BrokerHarness, request: Any) -> list[Any]:
    """Ask the share coordinators as this broker itself; the answer comes into the list."""
    answers: list[Any] = []
    harness.broker.coordinators.made.persister.ask(request, answers.append)
    harness.broker_step(MetadataMoved())
    return answers


def test_a_broker_asks_share_coordinators_until_they_serve(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 2)
    known, unknown = topic_id(harness), bytes(15) + b"\7"
    topics = [
        InitializeStateData(
            known, [Initialization(1, 1, 5), Initialization(0, 1, 6), Initialization(2, 1, 7)]
        ),
        InitializeStateData(unknown, [Initialization(0, 1, 8)]),
    ]
    answers = ask(harness, InitializeShareGroupStateRequest("g", topics))
    assert not answers
    assert any(isinstance(message, CreateTopicsRequest) for message in harness.wire.sent)
    harness.create_topic(TOPIC, 3)
    harness.pass_time(200)
    (answer,) = answers
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [
        (topic.topic_id, [(row.partition, row.error_code) for row in topic.partitions])
        for topic in answer.results
    ] == [(known, [(1, 0), (0, 0), (2, missing)]), (unknown, [(0, missing)])]
    assert summary(harness) == (0, 6)


def test_a_share_coordinator_that_never_serves_is_an_error_in_the_end(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    topics = [InitializeStateData(topic_id(harness), [Initialization(0, 1, 5)])]
    answers = ask(harness, InitializeShareGroupStateRequest("g", topics))
    for _ in range(40):
        harness.pass_time(1_000)
    (answer,) = answers
    assert answer.results[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ask(harness, InitializeShareGroupStateRequest("g", []))[0].results == []
