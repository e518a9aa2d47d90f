"""Fetches of clients that get an error because of an internal fault."""

from __future__ import annotations

import pytest

from kraftd.answers.log_source import LogSource
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Reader
from kraftd.messages.fetch_response import PartitionData
from kraftd.requests.effects import AnswerRecords
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness, consuming

TOO_LARGE = 1 << 63  # for the high watermark in an answer


def test_parked_fetch_whose_answer_cannot_be_written_fails_alone(
    controller: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_read = LogSource.read

    def read(
        source: LogSource, slot: Slot, reader: Reader, max_bytes: int, at_least_one: bool
    ) -> tuple[PartitionData, int]:
        data, size = real_read(source, slot, reader, max_bytes, at_least_one)
        if slot.max_bytes == 1:
            data.high_watermark = TOO_LARGE
        return data, size

    monkeypatch.setattr(LogSource, "read", read)
    controller.may_fail = True
    fetch = consuming(controller.view.high_watermark, max_wait_ms=100)
    fetch.topics[0].partitions[0].partition_max_bytes = 1
    failing = controller.client_send(ApiKey.FETCH, 17, fetch, connection_id=1001)
    other = controller.client_send(
        ApiKey.FETCH, 17, consuming(fetch.topics[0].partitions[0].fetch_offset, max_wait_ms=100)
    )
    controller.client_advance(100)
    assert controller.answer(failing).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert controller.answer(other).error_code == 0
    assert (
        controller.clients.boundary.failures == 1
        and "an answer could not be written" in controller.logged_texts
    )
    fetch.max_wait_ms = 0
    assert controller.client_ask(ApiKey.FETCH, 17, fetch).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not controller.closed and not controller.clients.client_fetches.calls


def test_fetch_whose_records_cannot_be_written_is_refused(
    controller: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_effect: AnswerRecords, _data: bytes) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(AnswerRecords, "fill", fill)
    controller.may_fail = True
    answer = controller.client_ask(ApiKey.FETCH, 17, consuming(0))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "a request failed" in controller.logged_texts


def test_fetch_that_fails_at_its_start_is_refused_and_forgotten(
    controller: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise ValueError("planted")

    controller.may_fail = True
    monkeypatch.setattr(LogSource, "availability", fail)
    assert controller.client_ask(ApiKey.FETCH, 17, consuming(0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not controller.clients.client_fetches.calls
