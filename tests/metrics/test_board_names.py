"""Dashboards made for Apache Kafka behind the JMX exporter find the metrics that they query."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kraftd.histogram import Histogram
from kraftd.metrics.families.board_names import JMX_EXPORTER, RULES, STRIMZI, board_families
from kraftd.metrics.families.exposition import FAMILIES, Exposition
from kraftd.metrics.state.readings import Readings
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import Harness
from tests.metadata_topic_node.clients import CLIENT
from tests.metrics.watched import readings

Found = dict[tuple[str, tuple[tuple[str, str], ...]], float]

# What Strimzi's boards of KRaft and Kafka, and its alert rules, query of a controller.
OF_STRIMZI = (
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_server_raftmetrics_log_end_offset",
    "kafka_server_raftmetrics_append_records_rate",
    "kafka_server_raftmetrics_fetch_records_rate",
    "kafka_server_raftmetrics_commit_latency_avg",
    "kafka_server_raftchannelmetrics_incoming_byte_total",
    "kafka_server_raftchannelmetrics_outgoing_byte_total",
    "kafka_server_raftchannelmetrics_request_total",
    "kafka_server_raftchannelmetrics_response_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_log_log_size",
)
# What the boards of Confluent's JMX stack and Grafana's library for Kafka query of a controller.
OF_JMX_EXPORTER = (
    "kafka_server_raft_metrics_current_state_info",
    "kafka_server_raft_metrics_current_leader",
    "kafka_server_raft_metrics_current_epoch",
    "kafka_server_raft_metrics_high_watermark",
    "kafka_server_raft_metrics_append_records_rate",
    "kafka_server_raft_metrics_fetch_records_rate",
    "kafka_server_raft_metrics_commit_latency_avg",
    "kafka_server_raft_metrics_election_latency_max",
    "kafka_server_raft_channel_metrics_request_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_activebrokercount",
    "kafka_controller_kafkacontroller_fencedbrokercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_controller_kafkacontroller_lastappliedrecordlagms",
    "kafka_controller_kafkacontroller_metadataerrorcount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_controllereventmanager_eventqueuetimems",
    "kafka_controller_controllereventmanager_eventqueueprocessingtimems",
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_requestmetrics_localtimems",
    "kafka_network_requestmetrics_remotetimems",
    "kafka_network_requestmetrics_remotetimems_count",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_logendoffset",
    "kafka_log_log_size",
)


def scrape(found: Readings, *rules: str) -> Found:
    families = (*FAMILIES, *board_families(FAMILIES, rules))
    text = b"".join(Exposition(found, "", families).pieces()).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    keyed = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}
    assert len(keyed) == len(samples), "a sample is exposed twice"
    return keyed


@pytest.fixture
def watched(tmp_path: Path) -> Readings:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    call = Call(1000, 0, CLIENT, "127.0.0.1", ApiKey.CREATE_TOPICS, 7, 1, "", None, size_bytes=100)
    harness.node.boundary.stats.answered([call], 1, 5_000_000)
    found = readings(harness)
    found.connections.opened["CONTROLLER"] = 1
    return found


@pytest.mark.parametrize(("rules", "queried"), [(STRIMZI, OF_STRIMZI), (JMX_EXPORTER, OF_JMX_EXPORTER)])
def test_every_metric_that_the_boards_query_of_a_controller_is_there(
    watched: Readings, rules: str, queried: tuple[str, ...]
) -> None:
    names = {name for name, _ in scrape(watched, rules)}
    assert set(queried) <= names, set(queried) - names


def test_the_usual_names_stay_and_no_sample_is_there_twice(watched: Readings) -> None:
    usual, both = scrape(watched), scrape(watched, *RULES)
    assert {key for key in usual if key[0].startswith("k")} <= set(both)
    for rules in RULES:
        assert all(
            family.name not in {one.name for one in FAMILIES} for family in board_families(FAMILIES, (rules,))
        )


def test_the_current_state_is_the_label_of_a_single_sample(watched: Readings) -> None:
    found = scrape(watched, *RULES)
    name = "kafka_server_raftmetrics_current_state"
    assert {key: value for key, value in found.items() if key[0] == name} == {
        (name, (("current_state", "leader"),)): 1
    }
    assert found["kafka_server_raft_metrics_current_state_info", (("state", "leader"),)] == 1


def test_the_names_of_percentages_differ_between_the_rule_sets() -> None:
    strimzi = {family.name for family in board_families(FAMILIES, (STRIMZI,))}
    exporter = {family.name for family in board_families(FAMILIES, (JMX_EXPORTER,))}
    assert "kafka_network_socketserver_networkprocessoravgidle_percent" in strimzi
    assert "kafka_network_socketserver_networkprocessoravgidlepercent" in exporter
    assert "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent" in strimzi & exporter


def test_a_histogram_becomes_a_count_and_quantiles(tmp_path: Path) -> None:
    steps = Histogram([1_000_000, 2_000_000, 4_000_000])
    for took_ns in [500_000] * 90 + [3_000_000] * 10:
        steps.note(took_ns)
    found = scrape(readings(Harness(tmp_path).start(), steps=steps), JMX_EXPORTER)
    name = "kafka_controller_controllereventmanager_eventqueueprocessingtimems"
    by_quantile = {dict(labels)["quantile"]: value for (one, labels), value in found.items() if one == name}
    assert found[f"{name}_count", ()] == 100
    assert 0 < by_quantile["0.50"] <= 1
    assert 2 < by_quantile["0.95"] < by_quantile["0.99"] <= 4


def test_metrics_without_an_mbean_have_no_second_name() -> None:
    assert not [one for rules in RULES for one in board_families(FAMILIES, (rules,)) if not one.bean]


@pytest.mark.parametrize("rule", RULES)
def test_summaries_are_summaries_under_other_names(rule: str) -> None:
    families = {one.name: one for one in board_families(FAMILIES, (rule,))}
    assert families["kafka_server_sharepartitionmetrics_fetchlocktimems"].kind == "summary"
