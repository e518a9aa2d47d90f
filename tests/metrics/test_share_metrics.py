"""Metrics of share groups at the leaders of their partitions (KIP-932)."""

from __future__ import annotations

from pathlib import Path

from kraftd.partition.share.states import ACCEPT, REJECT, RELEASE
from kraftd.requests.events import ConnectionClosed
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness, records
from tests.broker_node.test_share_fetches import LOCK_MS, Shared
from tests.metrics.test_broker_metrics import found


def test_records_in_flight_acknowledgements_and_ended_locks_are_counted__kip932(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(10))
    shared.harness.produce("t", records(5))

    def of(name: str) -> float:
        labels = (("group", "g"), ("partition", "0"), ("topic", "t"))
        return found(shared.harness)[f"kafka_server_SharePartitionMetrics_{name}", labels]

    def acknowledged() -> dict[str, float]:
        name = "kafka_server_ShareGroupMetrics_RecordAcknowledgementsPerSec_total"
        return {labels[0][1]: value for (one, labels), value in found(shared.harness).items() if one == name}

    assert shared.fetch("m") == [(0, 14, 1)]
    assert (of("InFlightMessageCount"), of("InFlightBatchCount")) == (15, 1)
    assert acknowledged() == {"Accept": 0, "Release": 0, "Reject": 0, "Renew": 0}
    shared.acknowledge("m", (0, 5, ACCEPT), (6, 6, REJECT), (7, 7, RELEASE))
    shared.acknowledge("m", (7, 7, ACCEPT))  # it is not held any more: what is refused does not count
    assert acknowledged() == {"Accept": 6, "Release": 1, "Reject": 1, "Renew": 0}
    assert of("InFlightMessageCount") == 8
    assert of("AcquisitionLockTimeoutPerSec_total") == 0
    shared.harness.pass_time(LOCK_MS)
    assert of("AcquisitionLockTimeoutPerSec_total") == 7  # without the one that was released


def test_fetches_and_acknowledgements_are_counted_by_topic_and_timed__kip932(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    harness = shared.harness
    harness.produce("t", records(10))

    def of(name: str, *labels: tuple[str, str]) -> float:
        return found(harness)[f"kafka_server_{name}", labels]

    def counts() -> list[float]:
        names = (
            "TotalShareFetch",
            "FailedShareFetch",
            "TotalShareAcknowledgement",
            "FailedShareAcknowledgement",
        )
        return [of(f"BrokerTopicMetrics_{name}RequestsPerSec_total", ("topic", "t")) for name in names]

    partition = (("group", "g"), ("partition", "0"), ("topic", "t"))
    assert shared.fetch("m") == [(0, 9, 1)]
    assert counts() == [1, 0, 0, 0]
    harness.pass_time(20)
    assert shared.acknowledge("m", (0, 4, ACCEPT)) == ErrorCode.NONE
    assert shared.acknowledge("m", (20, 21, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert counts() == [1, 0, 2, 1]
    harness.produce("t", records(3))
    assert shared.fetch("m") == [(10, 12, 1)]
    assert of("SharePartitionMetrics_InFlightBatchMessageCount_count", *partition) == 2
    assert of("SharePartitionMetrics_InFlightBatchMessageCount_sum", *partition) == 13
    assert of("SharePartitionMetrics_FetchLockTimeMs_count", *partition) == 2
    # They read at once: the least that shows is a millisecond, of none, and of those in between.
    assert of("SharePartitionMetrics_FetchLockRatio_sum", *partition) in range(101, 110)
    assert of("ShareGroupMetrics_RequestTopicPartitionsFetchRatio_sum", ("group", "g")) == 200
    assert of("ShareGroupMetrics_TopicPartitionsAcquireTimeMs_count", ("group", "g")) >= 2
    assert of("ShareGroupMetrics_PartitionLoadTimeMs_count") == 1
    assert of("ShareSessionCache_ShareSessionsCount") == 1
    assert of("ShareSessionCache_SharePartitionsCount") == 1
    assert of("share_coordinator_metrics_write_total") == 1
    assert of("share_coordinator_metrics_write_latency_max") >= 0
    harness.broker_step(ConnectionClosed(61))
    assert of("ShareSessionCache_ShareSessionEvictionsPerSec_total") == 1
    assert ("kafka_server_ShareGroupMetrics_TopicPartitionsAcquireTimeMs_count", (("group", "g"),)) not in (
        found(harness)
    )


def test_a_broker_without_share_groups_has_no_share_partition(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    assert not [name for name, _ in found(harness) if "SharePartitionMetrics" in name]
