"""Quotas of a broker's clients: the charged client, the wait, and the muted connection (KIP-219)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.ground.windowed_rate import WindowedRate
from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.records import build_records_batch
from tests.broker_node.harness import BrokerHarness
from tests.controller_node.harness import START_MS

ALL_CLIENTS = ("client-id", None)


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t")
    return harness


def set_quota(harness: BrokerHarness, key: str, value: float | None, *entity: tuple[str, str | None]) -> None:
    named = [EntityData(*one) for one in entity or (ALL_CLIENTS,)]
    entry = EntryData(named, [OpData(key, value or 0.0, value is None)])
    answer = harness.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry], False), 9)
    assert not answer.entries[0].error_code
    harness.timer.run_soon()


def test_a_rate_allows_ten_seconds_worth_at_once() -> None:
    rate = WindowedRate()
    waits = []
    for _ in range(60):
        rate.record(1, 1_000)
        waits.append(rate.excess_ms(5, 1_000))
    assert waits[:50] == [0] * 50
    assert waits[50:53] == [200, 400, 600] and waits[-1] == 2_000


def test_a_rate_falls_once_its_samples_are_eleven_seconds_old() -> None:
    rate = WindowedRate()
    for _ in range(51):
        rate.record(1, 1_000)
    assert rate.excess_ms(5, 1_000) == 200
    rate.record(1, 2_000)
    assert rate.excess_ms(5, 2_000) == 400
    assert rate.excess_ms(5, 12_000) == 0
    assert not rate.is_empty(12_000) and rate.is_empty(30_000)


def test_a_rate_of_replication_counts_at_least_one_window_and_no_further_burst() -> None:
    rate = WindowedRate()
    rate.record(1_000, 0)
    assert not rate.is_over(1_000, 0) and rate.is_over(999, 0)
    assert rate.is_over(499, 2_000) and not rate.is_over(500, 2_000)


def produce(harness: BrokerHarness, size_bytes: int, acks: int = 1, client_id: str = "test") -> Any:
    """The whole answer to a Produce of one record; None with acks=0."""
    batch = build_records_batch([(START_MS, None, b"x" * size_bytes, ())])
    request = harness.produce_request("t", {0: batch}, acks)
    return harness.response(harness.client_send(ApiKey.PRODUCE, 12, request, client_id=client_id))


def fetch(harness: BrokerHarness) -> Any:
    request = harness.fetch_request("t", {0: 0}, max_wait_ms=0)
    return harness.client_ask(ApiKey.FETCH, 12, request)


def test_a_producer_over_its_quota_is_answered_with_the_wait_and_muted(harness: BrokerHarness) -> None:
    set_quota(harness, "producer_byte_rate", 1_000)
    assert produce(harness, 9_000).throttle_time_ms == 0 and not harness.wire.mutes
    answer = produce(harness, 9_000)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert answer.throttle_time_ms == 8_214  # two requests of 9,107 bytes, of which ten seconds are free
    assert harness.wire.mutes == [True]
    harness.pass_time(answer.throttle_time_ms - 1)
    assert harness.wire.mutes == [True]
    harness.pass_time(1)
    assert harness.wire.mutes == [True, False]
    assert produce(harness, 9_000, client_id="another").throttle_time_ms == 0


def test_a_produce_without_an_answer_mutes_its_connection_all_the_same(harness: BrokerHarness) -> None:
    set_quota(harness, "producer_byte_rate", 100)
    assert produce(harness, 9_000, acks=0) is None
    assert harness.wire.mutes == [True]


def test_a_changed_or_removed_quota_counts_from_the_next_request_on(harness: BrokerHarness) -> None:
    set_quota(harness, "producer_byte_rate", 100)
    assert produce(harness, 9_000).throttle_time_ms > 0
    set_quota(harness, "producer_byte_rate", 100_000)
    assert produce(harness, 9_000).throttle_time_ms == 0
    set_quota(harness, "producer_byte_rate", 1, ("user", "ANONYMOUS"))  # of the user goes first
    assert produce(harness, 9_000).throttle_time_ms > 1_000_000
    set_quota(harness, "producer_byte_rate", None, ("user", "ANONYMOUS"))
    assert produce(harness, 9_000).throttle_time_ms == 0


def test_a_consumer_over_its_quota_gets_no_records_and_pays_nothing_for_them(harness: BrokerHarness) -> None:
    for _ in range(8):
        produce(harness, 2_000)
    set_quota(harness, "consumer_byte_rate", 500)
    answer = fetch(harness)
    data = answer.responses[0].partitions[0]
    assert answer.throttle_time_ms == 0 and 0 < len(data.records) <= 5_000  # ten seconds' worth
    answer = fetch(harness)
    data = answer.responses[0].partitions[0]
    assert answer.throttle_time_ms > 0 and not data.records and data.high_watermark == 8
    assert harness.wire.mutes == [True]
    harness.pass_time(12_000)
    answer = fetch(harness)
    assert answer.throttle_time_ms == 0 and len(answer.responses[0].partitions[0].records)


def test_time_on_the_loop_is_charged_to_the_requests_after__kip124(harness: BrokerHarness) -> None:
    set_quota(harness, "request_percentage", 1)
    ask = (ApiKey.METADATA, 12, MetadataRequest(None))
    assert harness.client_ask(*ask).throttle_time_ms == 0
    harness.broker.took(90_000_000)  # 0.9 % of ten seconds
    assert harness.client_ask(*ask).throttle_time_ms == 0
    harness.broker.took(20_000_000)
    assert harness.client_ask(*ask).throttle_time_ms == 1_000  # 1.1 %
    assert harness.wire.mutes == [True]
    harness.broker.took(900_000_000)
    assert harness.client_ask(*ask).throttle_time_ms == 1_000  # at most one window


def test_without_a_quota_nothing_is_measured(harness: BrokerHarness) -> None:
    produce(harness, 9_000)
    harness.broker.took(900_000_000)
    assert repr(harness.broker.quotas) == "<ClientQuotas, 0 rates, 0 answers throttled>"
