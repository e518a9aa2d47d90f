"""Fetches of clients that get an error because of an internal fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.client_node.effects import AnswerFetch
from kraftd.client_node.log_source import LogSource
from kraftd.fetch.slots import Slot
from kraftd.fetch.source import Reader
from kraftd.messages.fetch_response import PartitionData
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.client_node.clients import ClientHouse, consuming

TOO_LARGE = 1 << 63  # for the high watermark in an answer


@pytest.fixture
def house(tmp_path: Path) -> ClientHouse:
    """A leader with broker 1 and the topic t."""
    made = ClientHouse(tmp_path)
    made.start()
    made.unfenced(1)
    made.create("t")
    return made


def test_parked_fetch_whose_answer_cannot_be_written_fails_alone(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
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
    house.may_fail = True
    fetch = consuming(house.view.high_watermark, max_wait_ms=100)
    fetch.topics[0].partitions[0].partition_max_bytes = 1
    failing = house.client_send(ApiKey.FETCH, 17, fetch, connection_id=1001)
    other = house.client_send(
        ApiKey.FETCH, 17, consuming(fetch.topics[0].partitions[0].fetch_offset, max_wait_ms=100)
    )
    house.client_advance(100)
    assert house.answer(failing).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert house.answer(other).error_code == 0
    assert house.clients.boundary.failures == 1 and "an answer could not be written" in house.logged_texts
    fetch.max_wait_ms = 0
    assert house.client_ask(ApiKey.FETCH, 17, fetch).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not house.closed and not house.clients._fetch_calls


def test_fetch_whose_records_cannot_be_written_is_refused(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_effect: AnswerFetch, _data: bytes) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(AnswerFetch, "fill", fill)
    house.may_fail = True
    answer = house.client_ask(ApiKey.FETCH, 17, consuming(0))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "a request failed" in house.logged_texts


def test_fetch_that_fails_at_its_start_is_refused_and_forgotten(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_asked: object) -> None:
        raise ValueError("planted")

    house.may_fail = True
    monkeypatch.setattr(LogSource, "availability", look)
    assert house.client_ask(ApiKey.FETCH, 17, consuming(0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not house.clients._fetch_calls
