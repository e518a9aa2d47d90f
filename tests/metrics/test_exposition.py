"""The text of a scrape: names, labels and units; its cost does not grow with the image."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from kraftd.histogram import Histogram
from kraftd.metrics.families import own_metrics
from kraftd.metrics.families.exposition import FAMILIES, Exposition
from kraftd.metrics.families.family import prometheus_name
from kraftd.metrics.state.readings import Readings
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import Harness
from tests.metadata_topic_node.clients import CLIENT, ClientHarness, consuming
from tests.metrics.absent import ABSENT
from tests.metrics.watched import readings
from tests.raft.lone import EPOCH, Lone, fetch

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def text_of(found: Readings, accept: str = "") -> str:
    return b"".join(Exposition(found, accept).pieces()).decode()


def samples(found: Readings) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text_of(found))
        for sample in family.samples
    }


def test_names_of_kafkas_mbeans_become_names_that_prometheus_takes() -> None:
    bean = "kafka.controller:type=KafkaController,name=ActiveControllerCount"
    assert prometheus_name(bean) == "kafka_controller_KafkaController_ActiveControllerCount"
    assert prometheus_name("kafka.server:type=raft-metrics current-epoch") == (
        "kafka_server_raft_metrics_current_epoch"
    )
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_a_scrape_has_the_requested_format(tmp_path: Path) -> None:
    found = readings(Harness(tmp_path).start())
    plain = Exposition(found, "text/plain;version=0.0.4")
    assert plain.content_type.startswith("text/plain")
    assert "# EOF" not in text_of(found)
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    assert Exposition(found, accept).content_type.startswith("application/openmetrics-text")
    families = {family.name for family in open_metrics(text_of(found, accept))}
    assert "kraftd_disk_full" in families
    assert text_of(found, accept).count("# EOF") == 1


def test_a_histogram_is_cumulative_in_the_unit_of_its_name(tmp_path: Path) -> None:
    syncs = Histogram()
    for took_ns in (40_000, 50_000, 3_000_000, 20_000_000_000):
        syncs.note(took_ns)
    found = samples(readings(Harness(tmp_path).start(), syncs=syncs))
    for name, scale in (("kraftd_fsync_seconds", 1000), ("kafka_log_LogFlushStats_LogFlushRateAndTimeMs", 1)):
        by_bound = {
            round(float(dict(labels)["le"]) * scale, 6): value
            for (sample, labels), value in found.items()
            if sample == f"{name}_bucket"
        }
        assert by_bound[0.05] == 2
        assert by_bound[2] == 2
        assert by_bound[5] == 3
        assert by_bound[10_000] == 3
        assert by_bound[float("inf")] == 4
        assert found[f"{name}_sum", ()] * scale == pytest.approx(20_003.09)


def test_request_metrics_have_api_version_and_error(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    harness.beat(1, 7_777)  # of another broker epoch
    found = samples(readings(harness))
    errors = "kafka_network_RequestMetrics_ErrorsPerSec_total"
    labels = (("error", "STALE_BROKER_EPOCH"), ("request", "BrokerHeartbeat"))
    assert {key: value for key, value in found.items() if key[0] == errors} == {(errors, labels): 1}


def test_requests_of_ordinary_clients_have_metrics_with_the_same_labels(tmp_path: Path) -> None:
    harness = ClientHarness(tmp_path)
    harness.start()
    assert not [name for name, _ in samples(readings(harness)) if name.startswith("kraftd_client")]
    harness.client_ask(ApiKey.FETCH, 17, consuming(10_000))
    call = Call(1000, 0, CLIENT, "127.0.0.1", ApiKey.FETCH, 17, 1, "", None, size_bytes=100)
    harness.clients.boundary.stats.answered([call], 1, 5_000_000)
    found = samples(replace(readings(harness), clients=harness.clients))
    fetch = (("request", "Fetch"),)
    assert found["kraftd_client_requests_total", (*fetch, ("version", "17"))] == 1
    refused = (("error", "OFFSET_OUT_OF_RANGE"), *fetch)
    assert found["kraftd_client_request_errors_total", refused] == 1
    assert found["kraftd_client_request_remote_time_ms_sum", fetch] == 5
    controllers = "kafka_network_RequestMetrics_RequestsPerSec_total"
    assert not [labels for name, labels in found if name == controllers and fetch[0] in labels]
    assert found["kraftd_client_fetch_sessions", ()] == 0


def test_broker_metrics_follow_registration_and_state(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    harness.register(2)
    harness.advance(1_000)
    found = samples(readings(harness))
    state = "kafka_controller_KafkaController_BrokerRegistrationState"
    silent = "kafka_controller_KafkaController_TimeSinceLastHeartbeatReceivedMs"
    assert found[state, (("broker", "1"),)] == 30
    assert found[state, (("broker", "2"),)] == 10
    assert found[silent, (("broker", "1"),)] == 1_000
    assert found[silent, (("broker", "2"),)] == 1_000  # since it registered
    session_ms = harness.config.broker_session_timeout_ms
    harness.advance(session_ms)
    found = samples(readings(harness))
    assert found[silent, (("broker", "1"),)] == session_ms
    assert found[state, (("broker", "1"),)] == 10
    assert found["kafka_controller_KafkaController_FencedBrokerCount", ()] == 2


def test_a_leader_exposes_how_far_each_voter_is_behind() -> None:
    lone = Lone(voters=(1, 2, 3)).lead()
    end = lone.core.log_end_offset
    lone.now_ms += 1_000
    lone.ask(fetch(2, EPOCH + 1, end, EPOCH + 1))
    lone.now_ms += 40_000
    now_ms = lone.now_ms
    node = SimpleNamespace(core=lone.core)
    found: Any = SimpleNamespace(node=node, now_ms=now_ms, raft=lone.core.metrics(now_ms))
    by_name = {
        family.name: list(family.read(found)) for family in own_metrics.FAMILIES if "voter" in family.name
    }
    assert by_name == {
        "kraftd_voter_lag": [(("1",), 0), (("2",), 0)],  # the third has not fetched since the election
        "kraftd_voter_behind_seconds": [(("1",), 0), (("2",), 40), (("3",), 41)],
    }
    found.node = SimpleNamespace(core=Lone().follow(2).core)
    assert [list(family.read(found)) for family in own_metrics.FAMILIES if "voter" in family.name] == [[], []]


def test_nodes_with_trouble_are_counted_by_its_kind(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    found = samples(readings(harness, refused=["node 7"], duplicate_ids=["a", "b"], disk_room=(3, 10)))
    troubled = {
        dict(labels)["trouble"]: n for (name, labels), n in found.items() if name == "kraftd_troubled_nodes"
    }
    assert troubled == {"refused": 1, "ahead": 0, "went_back": 0, "twin": 2, "address": 0}
    assert found["kraftd_log_directory_free_bytes", ()] == 3
    assert found["kraftd_log_directory_size_bytes", ()] == 10


def test_counting_leaderless_partitions_does_not_iterate_over_partitions(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    harness.create(*(f"t{at}" for at in range(50)), partitions=3)
    harness.advance(harness.config.broker_session_timeout_ms + 1_000)
    harness.node.image.topics = None  # type: ignore[assignment]  # every look at them fails
    image = harness.node.image
    assert (image.leaderless_count, image.not_preferred_count) == (150, 150)


def test_the_page_on_metrics_has_every_metric_and_every_absent_one() -> None:
    page = DOCS.read_text()
    for family in FAMILIES:
        row = rf"^\| `{family.name}` \|"
        assert re.search(row, page, re.MULTILINE), f"{family.name} is not in {DOCS.name}"
        assert family.meaning in page, f"{family.name}: {DOCS.name} lacks {family.meaning!r}"
    for _, why in ABSENT:
        assert why in page, f"{DOCS.name} lacks: {why}"
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    known = {family.name for family in FAMILIES}
    assert {name for name in named if name.startswith(("kafka_", "kraftd_"))} <= known


def test_a_help_text_needs_no_other_line_to_be_understood() -> None:
    for family in FAMILIES:
        assert not re.search(r"^the same\b|^such\b|\blately\b", family.meaning), family
