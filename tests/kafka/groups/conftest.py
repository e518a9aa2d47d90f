"""The cluster that this folder's tests share: one controller, one stock broker with small groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.cluster import Cluster
from testkit.node import Kind
from tests.kafka.groups.pair import CONFIG, PARTITIONS

BROKER = 1


@contextmanager
def small_groups(home: Path, kind: Kind) -> Iterator[Cluster]:
    """A controller and a stock broker, both running."""
    cluster = Cluster(
        home,
        kind,
        broker_properties={
            "num.network.threads": 1,
            "num.io.threads": 1,
            "offsets.topic.num.partitions": PARTITIONS,
            "group.initial.rebalance.delay.ms": CONFIG.group_initial_rebalance_delay_ms,
            "group.min.session.timeout.ms": CONFIG.group_min_session_timeout_ms,
            "group.max.size": CONFIG.group_max_size,
            "offset.metadata.max.bytes": CONFIG.offset_metadata_max_bytes,
            "share.coordinator.state.topic.num.partitions": PARTITIONS,
            "share.coordinator.snapshot.update.records.per.snapshot": 4,
            "group.share.assignment.interval.ms": 0,
            "group.share.max.size": CONFIG.group_share_max_size,
            "group.share.heartbeat.interval.ms": CONFIG.group_share_heartbeat_interval_ms,
            "group.share.min.heartbeat.interval.ms": CONFIG.group_share_min_heartbeat_interval_ms,
            "group.consumer.assignment.interval.ms": 0,
            "group.consumer.max.size": CONFIG.group_consumer_max_size,
            "group.consumer.min.session.timeout.ms": CONFIG.group_consumer_min_session_timeout_ms,
            "group.consumer.min.heartbeat.interval.ms": CONFIG.group_consumer_min_heartbeat_interval_ms,
            "group.consumer.heartbeat.interval.ms": CONFIG.group_consumer_heartbeat_interval_ms,
        },
    )
    with cluster:
        cluster.start_controller()
        cluster.start_brokers(BROKER)
        yield cluster


@pytest.fixture(scope="package")
def group_broker(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with small_groups(tmp_path_factory.mktemp("groups"), kind) as cluster:
        yield cluster
