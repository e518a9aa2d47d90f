"""Consumers are sent to a follower in their rack (KIP-392)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.configdef.replica_selector import RACK_AWARE
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.test_followers import FOLLOWER, Replicated


def replicated_over_racks(tmp_path: Path, selector: str | None = RACK_AWARE) -> Replicated:
    found = Replicated(tmp_path)
    found.harness.broker.source._selects_by_rack = selector == RACK_AWARE
    brokers = found.harness.view.image.brokers
    for broker_id, rack in ((100, "a"), (FOLLOWER, "b")):
        brokers[broker_id] = replace(brokers[broker_id], rack=rack)
    found.fetch(0)
    return found


def consume(replicated: Replicated, offset: int, rack: str, version: int = 11) -> Any:
    request = replicated.harness.fetch_request("t", {0: offset}, rack_id=rack, max_wait_ms=500)
    slot = replicated.harness.client_send(ApiKey.FETCH, version, request)
    answer = replicated.harness.response(slot)
    return None if answer is None else answer.responses[0].partitions[0]


def test_a_consumer_is_sent_to_the_follower_in_its_rack_at_once__kip392(tmp_path: Path) -> None:
    replicated = replicated_over_racks(tmp_path)
    found = consume(replicated, 0, "b")
    assert found is not None, "the fetch was parked"
    assert (found.preferred_read_replica, found.records, found.error_code) == (FOLLOWER, b"", 0)


@pytest.mark.parametrize("rack", ["a", "c", ""])
def test_a_consumer_of_another_rack_reads_from_the_leader__kip392(tmp_path: Path, rack: str) -> None:
    replicated = replicated_over_racks(tmp_path)
    replicated.produce(acks=1)
    replicated.fetch(1)
    found = consume(replicated, 0, rack)
    assert found.preferred_read_replica == -1 and found.records


def test_a_follower_without_the_offset_is_not_preferred__kip392(tmp_path: Path) -> None:
    replicated = replicated_over_racks(tmp_path)
    replicated.produce(acks=1)  # the follower has not fetched it
    assert consume(replicated, 1, "b") is None, "the fetch waits at the leader"
    replicated.fetch(1)
    assert consume(replicated, 1, "b").preferred_read_replica == FOLLOWER


def test_a_follower_that_has_what_the_leader_has_deleted_is_preferred__kip392(tmp_path: Path) -> None:
    replicated = replicated_over_racks(tmp_path)
    replicated.produce(acks=1, count=3)
    replicated.fetch(3)
    deletion = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])], 30_000)
    replicated.harness.client_send(ApiKey.DELETE_RECORDS, 2, deletion)
    assert replicated.partition.log_start_offset == 2
    found = consume(replicated, 1, "b")
    assert (found.preferred_read_replica, found.error_code) == (FOLLOWER, 0)
    assert (found.log_start_offset, found.high_watermark) == (2, 3)
    assert consume(replicated, 1, "a").error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    replicated.fetch(3, log_start_offset=2)  # the follower has deleted it too
    assert consume(replicated, 1, "b").error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_outside_the_isr_is_not_preferred__kip392(tmp_path: Path) -> None:
    replicated = replicated_over_racks(tmp_path)
    replicated.produce(acks=1)
    replicated.lag()
    assert replicated.isr() == (100,)
    assert consume(replicated, 0, "b").preferred_read_replica == -1


def test_without_a_selector_the_leader_serves(tmp_path: Path) -> None:
    replicated = replicated_over_racks(tmp_path, selector=None)
    assert consume(replicated, 0, "b") is None, "the fetch waits at the leader"
