"""Kafka's metrics of a broker: what they count, and that very many partitions come in parts."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics

from kraftd.groups.group import GroupType
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.metrics.families import broker_metrics, family
from kraftd.metrics.families.exposition import Exposition
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import IDS, PATHS, BrokerHarness, records
from tests.broker_node.test_failures import failing
from tests.broker_node.test_group_loading import commit
from tests.metrics.test_exposition import samples
from tests.metrics.watched import readings


def found(harness: BrokerHarness) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return samples(readings(harness, clients=harness.broker))


def test_the_traffic_of_topics_is_counted(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 2, max_message_bytes="2000")
    batch = records(3)
    harness.produce("t", batch)
    harness.produce(
        "t", records(1, timestamp_ms=0, producer_id=7, producer_epoch=0, base_sequence=5), index=1
    )
    assert harness.produce("t", records(900), index=1).error_code == ErrorCode.MESSAGE_TOO_LARGE
    wrong = records(1, timestamp_ms=0, producer_id=7, producer_epoch=0, base_sequence=9)
    assert harness.produce("t", wrong, index=1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert harness.produce("t", b"").error_code == ErrorCode.INVALID_RECORD  # of any partition
    again = records(1, timestamp_ms=0, producer_id=7, producer_epoch=0, base_sequence=5)
    assert not harness.produce("t", again, index=1).error_code  # it was appended before
    harness.read("t")
    harness.read("t", offset=9)
    every = found(harness)

    def of(name: str, topic: str = "t") -> float:
        return every[f"kafka_server_BrokerTopicMetrics_{name}_total", (("topic", topic),)]

    assert of("MessagesInPerSec") == of("MessagesInPerSec", "") == 5
    assert of("BytesInPerSec") > of("BytesOutPerSec") == len(batch)
    assert (of("TotalProduceRequestsPerSec"), of("FailedProduceRequestsPerSec")) == (5, 1)
    assert of("BytesRejectedPerSec") > 2_000
    assert of("FailedFetchRequestsPerSec") == 0 and of("TotalFetchRequestsPerSec") >= 2
    harness.delete_topic("t")
    every = found(harness)
    assert of("MessagesInPerSec", "") == 5
    assert ("kafka_server_BrokerTopicMetrics_MessagesInPerSec_total", (("topic", "t"),)) not in every


def test_a_log_is_as_full_as_its_retention_allows(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    size_bytes = len(records(5))
    harness.create_topic("half", retention_bytes=str(2 * size_bytes))
    harness.create_topic("unlimited")
    for topic in ("half", "unlimited"):
        harness.produce(topic, records(5))
    every = found(harness)
    labels = [(("partition", "0"), ("topic", topic)) for topic in ("half", "unlimited")]
    assert [every["kafka_log_Log_RetentionSizeInPercent", one] for one in labels] == [50, 0]


def test_partitions_logs_groups_and_waiting_requests_are_counted(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 3)
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    harness.produce("t", records(5), index=2)
    assert commit(harness, 5) == 0
    harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0}))
    every = found(harness)

    def of(name: str, **labels: str) -> float:
        return every[f"kafka_{name}", tuple(sorted(labels.items()))]

    assert of("server_KafkaServer_BrokerState") == 3
    assert of("server_ReplicaManager_PartitionCount") == of("server_ReplicaManager_LeaderCount") == 4
    assert of("server_ReplicaManager_UnderReplicatedPartitions") == 0
    assert of("server_ReplicaManager_AtMinIsrPartitionCount") == 4
    assert of("log_Log_LogEndOffset", topic="t", partition="2") == 5
    assert of("log_Log_LogStartOffset", topic="t", partition="2") == 0
    assert of("log_Log_Size", topic="t", partition="2") == len(records(5))
    assert of("log_Log_NumLogSegments", topic="t", partition="2") == 1
    assert of("log_LogManager_OfflineLogDirectoryCount") == 0
    assert of("log_LogManager_LogDirectoryOffline", logDirectory=PATHS[1]) == 0
    assert of("coordinator_group_GroupMetadataManager_NumGroups") == 1
    assert of("coordinator_group_GroupMetadataManager_NumGroupsEmpty") == 1
    assert of("coordinator_group_GroupMetadataManager_NumOffsets") == 1
    assert of("server_group_coordinator_metrics_offset_commit_count_total") == 1
    assert of("server_group_coordinator_metrics_num_partitions", state="active") == 1
    assert of("server_DelayedOperationPurgatory_PurgatorySize", delayedOperation="Fetch") == 1
    assert of("server_DelayedOperationPurgatory_PurgatorySize", delayedOperation="Produce") == 0
    harness.disk.fault = failing(PATHS[1])
    lost = next(at for (_, at), log in harness.directories.logs.items() if log.parent == PATHS[1])
    harness.produce("t", records(1), index=lost)
    every = found(harness)
    assert of("log_LogManager_OfflineLogDirectoryCount") == 1
    assert of("log_LogManager_LogDirectoryOffline", logDirectory=PATHS[1]) == 1
    assert of("log_LogManager_LogDirectoryOffline", logDirectory=PATHS[0]) == 0


def test_a_broker_shows_how_far_it_has_applied_the_metadata(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    every = found(harness)
    name = "kafka_server_broker_metadata_metrics_{}"
    offset = every[name.format("last_applied_record_offset"), ()]
    assert offset == harness.node.core.high_watermark - 1 > 0
    assert every[name.format("last_applied_record_timestamp"), ()] > 0
    assert every[name.format("last_applied_record_lag_ms"), ()] >= 0
    for count in ("metadata_load_error_count", "metadata_apply_error_count", "ignored_static_voters"):
        assert every[name.format(count), ()] == 0
    alone = samples(readings(harness))  # without the broker role
    assert not [one for one, _ in alone if "broker_metadata_metrics" in one]


def test_directories_that_the_controller_does_not_know_yet_are_counted__kip858(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    name = "kafka_server_AssignmentsManager_QueuedReplicaToDirAssignments"
    assert found(harness)[name, ()] == 0
    harness.broker.directory_assignments.note(b"\x07" * 16, 0, IDS[0])
    assert found(harness)[name, ()] == found(harness)[name.replace("kafka", "org_apache_kafka", 1), ()] == 1


def test_fetch_sessions_are_counted_under_the_names_of_the_kip__kip227(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 3)
    harness.pass_time(100)
    name = "kafka_server_FetchSessionCache_{}"
    for sessions in (1, 2):
        request = harness.fetch_request("t", dict.fromkeys(range(3), 0), max_wait_ms=0, session_epoch=0)
        harness.client_ask(ApiKey.FETCH, 12, request)
        every = found(harness)
        assert every[name.format("NumIncrementalFetchSessions"), ()] == sessions
        assert every[name.format("NumIncrementalFetchPartitionsCached"), ()] == 3 * sessions
    harness.broker.session_cache.evictions = 5
    assert found(harness)[name.format("IncrementalFetchSessionEvictionsPerSec_total"), ()] == 5


def test_the_times_that_coordinators_partitions_took_to_load_are_shown(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("__consumer_offsets", 1)
    harness.pass_time(10)

    def shown(kind: str) -> list[float]:
        every = found(harness)
        name = f"kafka_server_{kind}_coordinator_metrics_partition_load_time"
        return [every[f"{name}_{which}", ()] for which in ("avg", "max")]

    assert shown("group") == [0, 0]
    harness.broker.groups.load_times.record(70, harness.broker.wall_ms)
    assert shown("group") == [35, 70]
    assert all(isnan(value) for kind in ("transaction", "share") for value in shown(kind))


def test_groups_are_counted_by_protocol_and_newer_ones_by_state(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 1)
    harness.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    harness.pass_time(100)
    assert commit(harness, 0) == 0
    request = ConsumerGroupHeartbeatRequest(
        "readers",
        "member",
        0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=[],
    )
    harness.client_send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    sharing = ShareGroupHeartbeatRequest("sharers", "member", 0, None, ("t",))
    harness.client_send(ApiKey.SHARE_GROUP_HEARTBEAT, 1, sharing)
    harness.pass_time(100)
    counts = {
        (name.removeprefix("kafka_server_group_coordinator_metrics_"), labels[0][1]): value
        for (name, labels), value in found(harness).items()
        if name.endswith("_group_count")
    }
    assert counts == {
        **{
            ("group_count", name): float(name in ("classic", "consumer", "share"))
            for name in (one.value for one in GroupType)
        },
        **{
            ("consumer_group_count", name): float(name == "Stable") for name in broker_metrics.CONSUMER_STATES
        },
        **{("share_group_count", name): float(name == "Stable") for name in broker_metrics.SHARE_STATES},
    }
    assert found(harness)["kafka_coordinator_group_GroupMetadataManager_NumGroups", ()] == 1
    rebalances = "kafka_server_group_coordinator_metrics_share_group_rebalance_count"
    assert next(value for (name, _), value in found(harness).items() if name.startswith(rebalances)) == 1


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_a_metric_with_very_many_samples_comes_in_parts(
    tmp_path: Path, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "SAMPLES_OF_A_PART", 2)
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 5)
    pieces = list(Exposition(readings(harness, clients=harness.broker), accept).pieces())
    of_logs = [piece for piece in pieces if b"kafka_log_Log_Size{" in piece]
    assert [piece.count(b"\nkafka_log_Log_Size{") + piece.startswith(b"kafka") for piece in of_logs] == [
        2,  # one of them is of the metadata log
        2,
        2,
    ]
    text = b"".join(pieces).decode()
    assert text.count("# TYPE kafka_log_Log_Size ") == 1
    if accept:
        named: dict[str, Any] = {one.name: one for one in open_metrics(text)}
        assert len(named["kafka_log_Log_Size"].samples) == 6


def test_requests_of_both_nodes_of_a_process_are_counted_together(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    for node in (harness.node, harness.broker):
        call = Call(1, 0, "L", "127.0.0.1", int(ApiKey.METADATA), 12, 1, "c", None, size_bytes=40)
        node.boundary.stats.answered([call], 1_000, 2_000)
    every = found(harness)
    name = "kafka_network_RequestMetrics_RequestsPerSec_total"
    assert every[name, (("request", "Metadata"), ("version", "12"))] == 2
    assert every["kafka_network_RequestMetrics_RequestBytes_sum", (("request", "Metadata"),)] == 80
