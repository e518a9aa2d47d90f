"""Throttles of replication (KIP-73): replicas that catch up wait, those in sync do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftd.messages.fetch_response import PartitionData
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness
from tests.broker_node.test_followers import FOLLOWER, Replicated
from tests.broker_node.test_following import Follower, batch

TOPIC, BROKER = 2, 4


def set_config(harness: BrokerHarness, type: int, name: str, key: str, value: str) -> None:
    resource = AlterConfigsResource(type, name, [AlterableConfig(key, 0, value)])
    request = IncrementalAlterConfigsRequest([resource], False)
    answer = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, 9)
    assert not answer.responses[0].error_code, answer
    harness.pass_time(10)


def records_of(answer: Any) -> int:
    """How many bytes of records there are."""
    return sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions)


def test_a_leader_holds_back_a_throttled_follower_that_catches_up(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path, leader_replication_throttled_replicas="0:100")
    harness = replicated.harness
    set_config(harness, BROKER, "100", "leader.replication.throttled.rate", "10")
    replicated.fetch(0)
    replicated.produce(acks=1)
    replicated.lag()
    assert replicated.isr() == (100,)
    size_bytes = records_of(replicated.fetch(0))  # the first answer is within any rate
    began_ms = harness.clock.ms
    assert size_bytes > 60 and not records_of(replicated.fetch(0))
    while not records_of(replicated.fetch(None)):
        assert harness.clock.ms - began_ms < 10_000
    assert harness.clock.ms - began_ms > size_bytes * 100 - 1_000
    set_config(harness, BROKER, "", "leader.replication.throttled.rate", "1")  # the broker's own goes first
    set_config(harness, BROKER, "100", "leader.replication.throttled.rate", "1000000")
    assert records_of(replicated.fetch(0))


def test_a_replica_in_sync_or_not_named_is_not_held_back(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path, leader_replication_throttled_replicas="0:100")
    harness = replicated.harness
    set_config(harness, BROKER, "", "leader.replication.throttled.rate", "1")
    replicated.fetch(0)
    replicated.produce(acks=1)
    assert replicated.isr() == (100, FOLLOWER)
    assert records_of(replicated.fetch(0)) and records_of(replicated.fetch(0))
    replicated.lag()
    assert replicated.isr() == (100,) and not records_of(replicated.fetch(0))
    set_config(harness, TOPIC, "t", "leader.replication.throttled.replicas", "0:1")
    assert records_of(replicated.fetch(0))
    set_config(harness, TOPIC, "t", "leader.replication.throttled.replicas", "*")
    assert not records_of(replicated.fetch(0))


def test_a_follower_waits_with_throttled_partitions_that_lag(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    set_config(follower.harness, TOPIC, "t", "follower.replication.throttled.replicas", "0:100")
    set_config(follower.harness, BROKER, "100", "follower.replication.throttled.rate", "10")
    follower.send(0, batch(0, 2), high_watermark=9)
    request = follower.take_fetch()
    assert [one.partitions for one in request.forgotten_topics_data] == [(0,)], (
        "it is over its rate, and lags"
    )
    began_ms = follower.harness.clock.ms
    while 0 not in follower.named(request):
        follower.answer_fetch(PartitionData(1, 0, 0, -1, 0, records=b""))
        follower.harness.pass_time(100)
        request = follower.take_fetch()
    assert 5_000 < follower.harness.clock.ms - began_ms < 9_000
    follower.answer_fetch(PartitionData(0, 0, 4, -1, 0, records=batch(2, 2)))
    assert not follower.take_fetch().forgotten_topics_data, "it has what its leader's high watermark shows"
