"""Metrics of share groups have the names and counts of a stock node that gets the same requests (KIP-932)."""

from __future__ import annotations

import re
import time
from random import Random
from typing import Any

import pytest

from kraftd.metrics.families.exposition import FAMILIES
from testkit.process import wait_until
from tests.kafka.broker.pair import BrokerPair
from tests.kafka.broker.test_random_share_requests import Drawn, begin
from tests.kafka.jmx import Attribute, read_jmx
from tests.metrics.scrape import Scrape

pytestmark = pytest.mark.kafka
STEPS = 40
OF_SHARE_GROUPS = re.compile(
    r"kafka\.server:type=("
    r"SharePartitionMetrics,|ShareGroupMetrics,|ShareSessionCache,|DelayedShareFetchMetrics,"
    r"|share-coordinator-metrics |BrokerTopicMetrics,name=(Total|Failed)Share)"
)
# About threads and queues of Kafka's coordinators, which kraftd does not have.
OF_THREADS = re.compile(
    r"kafka\.server:type=share-coordinator-metrics "
    r"(event-|thread-|batch-|background-|write-rate)"
)
# Counts of requests alone: they do not depend on time.
ALIKE = (
    "kafka_server_BrokerTopicMetrics_TotalShareFetchRequestsPerSec",
    "kafka_server_BrokerTopicMetrics_TotalShareAcknowledgementRequestsPerSec",
    "kafka_server_BrokerTopicMetrics_FailedShareAcknowledgementRequestsPerSec",
    "kafka_server_ShareGroupMetrics_RecordAcknowledgementsPerSec",
    "kafka_server_SharePartitionMetrics_InFlightMessageCount",
    "kafka_server_SharePartitionMetrics_InFlightBatchCount",
    "kafka_server_ShareSessionCache_ShareSessionsCount",
    "kafka_server_ShareSessionCache_SharePartitionsCount",
    "kafka_server_ShareSessionCache_ShareSessionEvictionsPerSec",
)


def of_share_groups(pair: BrokerPair) -> list[Attribute]:
    return [one for one in read_jmx(pair.sides[0].node.pid) if OF_SHARE_GROUPS.match(one.bean)]


def differences(pair: BrokerPair) -> list[str]:
    kraftd, found = Scrape(pair.sides[1].metrics_port), []
    for one in of_share_groups(pair):
        if one.name not in ALIKE or one.attribute not in ("Count", "Value"):
            continue
        name = f"{one.name}_total" if one.attribute == "Count" else one.name
        labels = one.labels
        if "BrokerTopicMetrics" in name and not labels:
            labels = frozenset({("topic", "")})
        value = kraftd.find(name, labels)
        if value != one.value and not (value is None and not one.value):
            found.append(f"{name} {sorted(labels)}: Kafka {one.text}, kraftd {value}")
    return found


def test_metrics_of_share_groups_have_kafkas_names_and_counts__kip932(pair: BrokerPair) -> None:
    drawn = Drawn(Random(7), "read_uncommitted", "measured", 1)
    begin(pair, drawn)
    for _ in range(STEPS):
        request, version = drawn.draw()
        answers: list[Any] = pair.ask(request, version)
        drawn.learn(request, answers[0])
        if getattr(request, "share_session_epoch", 0) == -1:
            time.sleep(0.1)  # what the member held is released after the answer
    names = {family.name.removesuffix("_total") for family in FAMILIES}
    kafka = of_share_groups(pair)
    missing = {one.bean for one in kafka if one.name.removesuffix("_total") not in names}
    assert not {bean for bean in missing if not OF_THREADS.match(bean)}
    assert {one.name for one in kafka} >= set(ALIKE)
    wait_until(lambda: not differences(pair), "the counts are the same", 20, poll_s=1)
