"""Decisions of one event loop callback are appended together, before any other event reaches the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.controller_node import appending, events
from kraftd.messages.topic_record import TopicRecord
from kraftd.raft import events as raft_events
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches, read_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import decode_batch
from tests.controller_node.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A controller whose callbacks and syncs end when the test says so."""
    house = House(tmp_path).start()
    house.unfenced()
    house.sync_by_itself = house.turns_end_by_themselves = False
    return house


def record_counts(house: House, from_offset: int) -> list[int]:
    """The number of records in each batch of the log from an offset on."""
    data = house.storage.log.read(from_offset, 1 << 20, house.storage.log.log_end)
    return [header.record_count for header, _, _ in iter_batches(data)]


def end_turn(house: House) -> None:
    house.step(events.FlushDue())


def test_decisions_of_one_callback_are_one_batch(house: House) -> None:
    start = house.storage.log.log_end
    places = [house.create(name, connection_id=number) for number, name in enumerate("abc", 2)]
    assert house.storage.log.log_end == start
    assert house.node.decisions.appends.next_offset == start + 6
    end_turn(house)
    assert record_counts(house, start) == [6]
    assert [house.answer(place) for place in places] == [None, None, None]
    house.sync()
    assert [house.answer(place).topics[0].error_code for place in places] == [ErrorCode.NONE] * 3


def test_a_callback_without_decisions_appends_nothing(house: House) -> None:
    start = house.storage.log.log_end
    house.create("a")
    end_turn(house)
    end_turn(house)
    assert record_counts(house, start) == [2]


def test_each_decision_includes_the_results_of_those_before_it(house: House) -> None:
    first, second = house.create("a"), house.create("a", connection_id=2)
    end_turn(house)
    house.sync()
    assert house.answer(first).topics[0].error_code == ErrorCode.NONE
    assert house.answer(second).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_an_answer_based_on_pending_records_waits_for_their_commit(house: House) -> None:
    house.create("a")
    refused = house.create("a", connection_id=2)
    assert house.answer(refused) is None
    end_turn(house)
    assert house.answer(refused) is None
    house.sync()
    assert house.answer(refused) is not None


def test_broker_epochs_of_one_callback_are_the_offsets_of_their_records(house: House) -> None:
    places = []
    for broker_id in (2, 3):
        request = house.registration(broker_id)
        places.append(house.send(ApiKey.BROKER_REGISTRATION, 4, request, connection_id=broker_id))
    end_turn(house)
    house.sync()
    for broker_id, place in zip((2, 3), places, strict=True):
        epoch = house.answer(place).broker_epoch
        data = house.storage.log.read(epoch, 1 << 16, house.storage.log.log_end)
        header, _, _ = next(iter_batches(data))
        assert header.base_offset <= epoch <= header.last_offset
        assert house.node.image.brokers[broker_id].epoch == epoch
    first, second = (house.answer(place).broker_epoch for place in places)
    assert second == first + 1


def test_a_fetch_of_the_same_callback_gets_the_pending_records(house: House) -> None:
    start = house.storage.log.log_end
    house.create("a")
    house.fetch(start)
    assert record_counts(house, start) == [2]


def test_a_large_decision_is_a_separate_batch_behind_pending_records(house: House) -> None:
    start = house.storage.log.log_end
    house.create("small")
    house.create("large", partitions=appending.MAX_GATHERED_RECORDS, connection_id=2)
    house.create("late", connection_id=3)
    assert record_counts(house, start) == [2, appending.MAX_GATHERED_RECORDS + 1]
    end_turn(house)
    assert record_counts(house, start) == [2, appending.MAX_GATHERED_RECORDS + 1, 2]


def test_too_many_records_of_one_callback_are_several_batches(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "MAX_BATCH_BYTES", 200)
    start = house.storage.log.log_end
    for number in range(8):
        house.create(f"topic-{number}", connection_id=number)
    end_turn(house)
    counts = record_counts(house, start)
    assert sum(counts) == 16 and len(counts) > 1
    assert all(count % 2 == 0 for count in counts), "a decision is never cut in two"


def test_the_log_has_the_records_in_the_order_of_the_decisions(house: House) -> None:
    start = house.storage.log.log_end
    names = [f"topic-{number}" for number in range(10)]
    for number, name in enumerate(names):
        house.create(name, connection_id=number)
    end_turn(house)
    data = house.storage.log.read(start, 1 << 20, house.storage.log.log_end)
    found = [
        message.name
        for batch in (read_batch(data, 0),)
        for message in decode_batch(batch)
        if isinstance(message, TopicRecord)
    ]
    assert found == names


def test_lost_leadership_undoes_pending_records_and_refuses_waiting_calls(house: House) -> None:
    places = [house.create(name, connection_id=number) for number, name in enumerate("ab", 2)]
    house.step(raft_events.ResignRequested(house.node.core.epoch))
    assert not house.node.active
    codes = [house.answer(place).topics[0].error_code for place in places]
    assert codes == [ErrorCode.NOT_CONTROLLER] * 2
    assert house.node.image.topic_named("a") is None and house.node.image.topic_named("b") is None
    end_turn(house)  # the requested end of the callback finds no pending records
    assert len(house.node.decisions.appends) == 0


def test_records_decided_before_the_disk_filled_are_still_appended(house: House) -> None:
    start = house.storage.log.log_end
    house.create("a")
    house.step(events.DiskFilled("no room"))
    end_turn(house)
    assert record_counts(house, start) == [2]


def test_a_node_that_shuts_down_appends_pending_records_and_decides_no_more(
    house: House,
) -> None:
    start = house.storage.log.log_end
    house.create("a")
    house.step(raft_events.ShutdownRequested(1_000))
    assert record_counts(house, start) == [2]
    late = house.create("b", connection_id=2)
    end_turn(house)
    assert house.answer(late).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert house.node.image.topic_named("b") is None


def test_the_bootstrap_records_are_a_separate_batch_as_in_kafka(tmp_path: Path) -> None:
    house = House(tmp_path).start()
    control, bootstrap, registration = record_counts(house, 0)
    assert control > 0 and bootstrap > 1 and registration == 1
