"""Decisions of one event loop callback are appended together, before any other event reaches the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.controller_node import events
from kraftd.controller_node.deciding import appending
from kraftd.messages.topic_record import TopicRecord
from kraftd.raft import events as raft_events
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches, read_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import decode_batch
from tests.controller_node.harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """A controller whose callbacks and syncs end when the test says so."""
    harness = Harness(tmp_path).start()
    harness.unfenced()
    harness.sync_by_itself = harness.flushes_by_itself = False
    return harness


def record_counts(harness: Harness, from_offset: int) -> list[int]:
    """The number of records in each batch of the log from an offset on."""
    data = harness.storage.log.read(from_offset, 1 << 20, harness.storage.log.log_end)
    return [header.record_count for header, _, _ in iter_batches(data)]


def end_turn(harness: Harness) -> None:
    harness.step(events.FlushDue())


def test_decisions_of_one_callback_are_one_batch(harness: Harness) -> None:
    start = harness.storage.log.log_end
    places = [harness.create(name, connection_id=number) for number, name in enumerate("abc", 2)]
    assert harness.storage.log.log_end == start
    assert harness.node.decisions.appends.next_offset == start + 6
    end_turn(harness)
    assert record_counts(harness, start) == [6]
    assert [harness.answer(place) for place in places] == [None, None, None]
    harness.sync()
    assert [harness.answer(place).topics[0].error_code for place in places] == [ErrorCode.NONE] * 3


def test_a_callback_without_decisions_appends_nothing(harness: Harness) -> None:
    start = harness.storage.log.log_end
    harness.create("a")
    end_turn(harness)
    end_turn(harness)
    assert record_counts(harness, start) == [2]


def test_each_decision_includes_the_results_of_those_before_it(harness: Harness) -> None:
    first, second = harness.create("a"), harness.create("a", connection_id=2)
    end_turn(harness)
    harness.sync()
    assert harness.answer(first).topics[0].error_code == ErrorCode.NONE
    assert harness.answer(second).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_an_answer_based_on_pending_records_waits_for_their_commit(harness: Harness) -> None:
    harness.create("a")
    refused = harness.create("a", connection_id=2)
    assert harness.answer(refused) is None
    end_turn(harness)
    assert harness.answer(refused) is None
    harness.sync()
    assert harness.answer(refused) is not None


def test_broker_epochs_of_one_callback_are_the_offsets_of_their_records(harness: Harness) -> None:
    places = []
    for broker_id in (2, 3):
        request = harness.registration(broker_id)
        places.append(harness.send(ApiKey.BROKER_REGISTRATION, 4, request, connection_id=broker_id))
    end_turn(harness)
    harness.sync()
    for broker_id, place in zip((2, 3), places, strict=True):
        epoch = harness.answer(place).broker_epoch
        data = harness.storage.log.read(epoch, 1 << 16, harness.storage.log.log_end)
        header, _, _ = next(iter_batches(data))
        assert header.base_offset <= epoch <= header.last_offset
        assert harness.node.image.brokers[broker_id].epoch == epoch
    first, second = (harness.answer(place).broker_epoch for place in places)
    assert second == first + 1


def test_a_fetch_of_the_same_callback_gets_the_pending_records(harness: Harness) -> None:
    start = harness.storage.log.log_end
    harness.create("a")
    harness.fetch(start)
    assert record_counts(harness, start) == [2]


def test_a_large_decision_is_a_separate_batch_behind_pending_records(harness: Harness) -> None:
    start = harness.storage.log.log_end
    harness.create("small")
    harness.create("large", partitions=appending.MAX_GATHERED_RECORDS, connection_id=2)
    harness.create("late", connection_id=3)
    assert record_counts(harness, start) == [2, appending.MAX_GATHERED_RECORDS + 1]
    end_turn(harness)
    assert record_counts(harness, start) == [2, appending.MAX_GATHERED_RECORDS + 1, 2]


def test_too_many_records_of_one_callback_are_several_batches(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "MAX_BATCH_BYTES", 200)
    start = harness.storage.log.log_end
    for number in range(8):
        harness.create(f"topic-{number}", connection_id=number)
    end_turn(harness)
    counts = record_counts(harness, start)
    assert sum(counts) == 16 and len(counts) > 1
    assert all(count % 2 == 0 for count in counts), "a decision is never cut in two"


def test_the_log_has_the_records_in_the_order_of_the_decisions(harness: Harness) -> None:
    start = harness.storage.log.log_end
    names = [f"topic-{number}" for number in range(10)]
    for number, name in enumerate(names):
        harness.create(name, connection_id=number)
    end_turn(harness)
    data = harness.storage.log.read(start, 1 << 20, harness.storage.log.log_end)
    found = [
        message.name
        for batch in (read_batch(data, 0),)
        for message in decode_batch(batch)
        if isinstance(message, TopicRecord)
    ]
    assert found == names


def test_lost_leadership_undoes_pending_records_and_refuses_waiting_calls(harness: Harness) -> None:
    places = [harness.create(name, connection_id=number) for number, name in enumerate("ab", 2)]
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    assert not harness.node.active
    codes = [harness.answer(place).topics[0].error_code for place in places]
    assert codes == [ErrorCode.NOT_CONTROLLER] * 2
    assert harness.node.image.topic_named("a") is None and harness.node.image.topic_named("b") is None
    end_turn(harness)  # the requested end of the callback finds no pending records
    assert len(harness.node.decisions.appends) == 0


def test_records_decided_before_the_disk_filled_are_still_appended(harness: Harness) -> None:
    start = harness.storage.log.log_end
    harness.create("a")
    harness.step(events.DiskFilled("no room"))
    end_turn(harness)
    assert record_counts(harness, start) == [2]


def test_a_node_that_shuts_down_appends_pending_records_and_decides_no_more(
    harness: Harness,
) -> None:
    start = harness.storage.log.log_end
    harness.create("a")
    harness.step(raft_events.ShutdownRequested(1_000))
    assert record_counts(harness, start) == [2]
    late = harness.create("b", connection_id=2)
    end_turn(harness)
    assert harness.answer(late).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert harness.node.image.topic_named("b") is None


def test_the_bootstrap_records_are_a_separate_batch_as_in_kafka(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    control, bootstrap, registration = record_counts(harness, 0)
    assert control > 0 and bootstrap > 1 and registration == 1


@pytest.mark.parametrize("partitions", [300, 1_000])  # decided at once, and in several callbacks
def test_a_decision_that_no_batch_can_hold_costs_no_other_request_its_answer(
    tmp_path: Path, partitions: int
) -> None:
    harness = Harness(tmp_path, internal__metadata__max__batch__size__in__bytes=10_000).start()
    harness.unfenced()
    end_offset = harness.storage.log.log_end
    parked = harness.fetch(end_offset, high_watermark=end_offset)
    harness.clock.ms += 500  # the fetch has waited long enough, and the timer is late
    large = harness.create("large", partitions=partitions, connection_id=3)
    assert harness.answer(large).topics[0].error_code == ErrorCode.POLICY_VIOLATION
    assert harness.answer(parked).error_code == ErrorCode.NONE
    assert harness.storage.log.log_end == end_offset


def test_gathered_decisions_fit_into_the_largest_batch_of_the_configuration(tmp_path: Path) -> None:
    harness = Harness(tmp_path, internal__metadata__max__batch__size__in__bytes=4_000).start()
    harness.unfenced()
    harness.flushes_by_itself = False
    places = [harness.create(f"topic-{i}", partitions=20, connection_id=10 + i) for i in range(8)]
    end_turn(harness)
    assert [harness.answer(place).topics[0].error_code for place in places] == [ErrorCode.NONE] * 8
