"""A very large request is decided, appended and applied in several callbacks.

Other requests are served in between.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node import events, long_decisions
from kraftd.controller_node.replay import Replay
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.metadata.image import Image
from kraftd.raft import events as raft_events
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.house import House

TOPICS = [f"large-{number}" for number in range(150)]
PARTITIONS = 10
RECORDS = len(TOPICS) * (1 + PARTITIONS)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A controller whose callbacks run when the test says so."""
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", 500)
    house = House(tmp_path).start()
    house.epoch = house.unfenced()  # type: ignore[attr-defined]
    house.runs_slices_by_itself = False
    return house


def large(house: House, connection_id: int = 1) -> tuple[int, int]:
    return house.create(*TOPICS, partitions=PARTITIONS, connection_id=connection_id)


def run_callback(house: House) -> None:
    house.step(events.SliceDue())


def run_callbacks(house: House, most: int = 100) -> int:
    """Run callbacks until no work is left; return how many."""
    for count in range(most):
        if not house.node.decisions.long.busy:
            return count
        run_callback(house)
    raise AssertionError("it does not end")


def run_until_appended(house: House) -> None:
    end = house.storage.log.log_end
    for _ in range(100):
        if house.storage.log.log_end > end:
            return
        run_callback(house)
    raise AssertionError("nothing is appended")


def codes(answer: Any) -> set[int]:
    return {topic.error_code for topic in answer.topics}


def replayed(house: House) -> Image:
    """The image of a plain replay of the log."""
    replay = Replay(Image())
    end = house.storage.log.log_end
    replay.more(end)
    replay.begin(0, house.storage.log.read(0, 1 << 24, end))
    while replay.run_slice(end) is not None:
        pass
    return replay.image


def test_it_takes_several_callbacks_and_becomes_one_batch(house: House) -> None:
    start = house.storage.log.log_end
    place = large(house)
    assert house.answer(place) is None
    assert run_callbacks(house) > 5
    assert codes(house.answer(place)) == {ErrorCode.NONE}
    data = house.storage.log.read(start, 1 << 24, house.storage.log.log_end)
    assert [header.record_count for header, _, _ in iter_batches(data)] == [RECORDS]
    assert house.node.image == replayed(house)
    assert house.node.following.replay.next_offset == start + RECORDS


def test_other_requests_without_records_are_answered_meanwhile(house: House) -> None:
    place = large(house)
    while house.node.decisions.long.busy:
        assert not house.beat(1, house.epoch, current_metadata_offset=house.epoch).is_fenced  # type: ignore[attr-defined]
        assert house.api_versions().error_code == ErrorCode.NONE
        run_callback(house)
    assert codes(house.answer(place)) == {ErrorCode.NONE}


def test_other_decisions_wait_in_order_and_include_its_result(house: House) -> None:
    first = large(house)
    same = house.create(TOPICS[-1], connection_id=2)
    another = house.create("another", connection_id=3)
    second = large(house, connection_id=4)
    shutdown = house.send(
        ApiKey.BROKER_HEARTBEAT, 1, _shutdown(house), connection_id=5
    )  # it leads new partitions, so its heartbeat needs records
    configs = house.send(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        DescribeConfigsRequest([DescribeConfigsResource(2, TOPICS[0], None)]),
        connection_id=6,
    )
    assert house.answer(same) is None
    assert house.answer(another) is None
    run_callbacks(house)
    assert codes(house.answer(first)) == {ErrorCode.NONE}
    assert codes(house.answer(same)) == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert codes(house.answer(another)) == {ErrorCode.NONE}
    assert codes(house.answer(second)) == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert not house.answer(shutdown).should_shut_down
    assert house.answer(configs).results[0].error_code == ErrorCode.NONE
    house.runs_slices_by_itself = True
    house.advance(100)
    assert house.node.image == replayed(house)


def _shutdown(house: House) -> Any:
    from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest

    return BrokerHeartbeatRequest(1, house.epoch, house.epoch, want_shut_down=True)  # type: ignore[attr-defined]


def test_a_request_whose_timeout_passes_while_it_waits_is_not_decided(house: House) -> None:
    from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

    def send(name: str, timeout_ms: int, connection_id: int) -> tuple[int, int]:
        request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms)
        return house.send(ApiKey.CREATE_TOPICS, 7, request, connection_id)

    large(house)
    late, early = send("late", 100, 2), send("early", 101, 3)
    house.advance(100)
    run_callbacks(house)
    assert codes(house.answer(late)) == {ErrorCode.REQUEST_TIMED_OUT}
    assert codes(house.answer(early)) == {ErrorCode.NONE}
    assert house.node.image.topic_named("late") is None
    assert house.node.decisions.timed_out == 1


def test_validate_only_writes_no_records(house: House) -> None:
    from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

    before = house.storage.log.log_end
    request = CreateTopicsRequest([CreatableTopic(name, PARTITIONS, 1) for name in TOPICS], 30_000, True)
    place = house.send(ApiKey.CREATE_TOPICS, 7, request)
    run_callbacks(house)
    assert codes(house.answer(place)) == {ErrorCode.NONE}
    assert house.storage.log.log_end == before


def test_leadership_lost_before_the_append_refuses_it_and_waiting_calls(house: House) -> None:
    place, behind = large(house), house.create("behind", connection_id=2)
    before = house.storage.log.log_end
    run_callback(house)
    house.step(raft_events.ResignRequested(house.node.core.epoch))
    assert codes(house.answer(place)) == {ErrorCode.NOT_CONTROLLER}
    assert codes(house.answer(behind)) == {ErrorCode.NOT_CONTROLLER}
    assert not house.node.decisions.long.busy
    assert house.storage.log.log_end == before
    assert house.node.image == replayed(house)


def test_leadership_lost_between_append_and_application_undoes_it(house: House) -> None:
    house.sync_by_itself = False
    image = replayed(house)
    place = large(house)
    run_until_appended(house)
    run_callback(house)
    assert house.node.decisions.long.busy
    house.step(raft_events.ResignRequested(house.node.core.epoch))
    assert codes(house.answer(place)) == {ErrorCode.NOT_CONTROLLER}
    assert house.node.image == image
    assert house.node.following.replay.next_offset == house.node.core.high_watermark


def test_records_committed_before_they_are_applied_are_still_applied(house: House) -> None:
    place = large(house)
    run_until_appended(house)  # and synced at once, so committed
    assert house.node.core.high_watermark == house.storage.log.log_end
    assert house.answer(place) is None
    house.step(raft_events.ResignRequested(house.node.core.epoch))
    assert codes(house.answer(place)) == {ErrorCode.NONE}
    while house.node.following.replay.busy:
        run_callback(house)
    assert house.node.image == replayed(house)


def test_a_full_disk_refuses_it(house: House) -> None:
    place = large(house)
    house.step(events.DiskFilled("no room"))
    run_callbacks(house)
    assert codes(house.answer(place)) == {ErrorCode.NOT_CONTROLLER}
    assert house.node.image == replayed(house)
