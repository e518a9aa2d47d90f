"""Metrics of share groups at the leaders of their partitions (KIP-932)."""

from __future__ import annotations

from pathlib import Path

from kraftd.partition.share.states import ACCEPT, REJECT, RELEASE
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


def test_a_broker_without_share_groups_has_no_share_partition(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    assert not [name for name, _ in found(harness) if "SharePartitionMetrics" in name]
