"""A very large request is decided, appended and applied in several callbacks.

Other requests are served in between.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node import events
from kraftd.controller_node.deciding import long_decisions
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.metadata.image import Image
from kraftd.raft import events as raft_events
from kraftd.replica.replay import Replay
from kraftd.requests.events import SliceDue
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

TOPICS = [f"large-{number}" for number in range(150)]
PARTITIONS = 10
RECORDS = len(TOPICS) * (1 + PARTITIONS)


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """A controller whose callbacks run when the test says so."""
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", 500)
    harness = Harness(tmp_path).start()
    harness.epoch = harness.unfenced()  # type: ignore[attr-defined]
    harness.runs_slices_by_itself = False
    return harness


def large(harness: Harness, connection_id: int = 1) -> tuple[int, int]:
    return harness.create(*TOPICS, partitions=PARTITIONS, connection_id=connection_id)


def run_callback(harness: Harness) -> None:
    harness.step(SliceDue())


def run_callbacks(harness: Harness, most: int = 100) -> int:
    """Run callbacks until no work is left; return how many."""
    for count in range(most):
        if not (harness.node.decisions.long.busy or harness.node.boundary.large.busy):
            return count
        run_callback(harness)
    raise AssertionError("it does not end")


def run_until_appended(harness: Harness) -> None:
    end = harness.storage.log.log_end
    for _ in range(100):
        if harness.storage.log.log_end > end:
            return
        run_callback(harness)
    raise AssertionError("nothing is appended")


def codes(answer: Any) -> set[int]:
    return {topic.error_code for topic in answer.topics}


def replayed(harness: Harness) -> Image:
    """The image of a plain replay of the log."""
    replay = Replay(Image())
    end = harness.storage.log.log_end
    replay.more(end)
    replay.begin(0, harness.storage.log.read(0, 1 << 24, end))
    while replay.run_slice(end) is not None:
        pass
    return replay.image


def test_it_takes_several_callbacks_and_becomes_one_batch(harness: Harness) -> None:
    start = harness.storage.log.log_end
    place = large(harness)
    assert harness.answer(place) is None
    assert run_callbacks(harness) > 5
    assert codes(harness.answer(place)) == {ErrorCode.NONE}
    data = harness.storage.log.read(start, 1 << 24, harness.storage.log.log_end)
    assert [header.record_count for header, _, _ in iter_batches(data)] == [RECORDS]
    assert harness.node.image == replayed(harness)
    assert harness.node.following.replay.next_offset == start + RECORDS


def test_other_requests_without_records_are_answered_meanwhile(harness: Harness) -> None:
    place = large(harness)
    while harness.node.decisions.long.busy:
        assert not harness.beat(1, harness.epoch, current_metadata_offset=harness.epoch).is_fenced  # type: ignore[attr-defined]
        assert harness.api_versions().error_code == ErrorCode.NONE
        run_callback(harness)
    assert codes(harness.answer(place)) == {ErrorCode.NONE}


def test_other_decisions_wait_in_order_and_include_its_result(harness: Harness) -> None:
    first = large(harness)
    same = harness.create(TOPICS[-1], connection_id=2)
    another = harness.create("another", connection_id=3)
    second = large(harness, connection_id=4)
    shutdown = harness.send(
        ApiKey.BROKER_HEARTBEAT, 1, _shutdown(harness), connection_id=5
    )  # it leads new partitions, so its heartbeat needs records
    configs = harness.send(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        DescribeConfigsRequest([DescribeConfigsResource(2, TOPICS[0], None)]),
        connection_id=6,
    )
    assert harness.answer(same) is None
    assert harness.answer(another) is None
    run_callbacks(harness)
    assert codes(harness.answer(first)) == {ErrorCode.NONE}
    assert codes(harness.answer(same)) == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert codes(harness.answer(another)) == {ErrorCode.NONE}
    assert codes(harness.answer(second)) == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert not harness.answer(shutdown).should_shut_down
    assert harness.answer(configs).results[0].error_code == ErrorCode.NONE
    harness.runs_slices_by_itself = True
    harness.advance(100)
    assert harness.node.image == replayed(harness)


def _shutdown(harness: Harness) -> Any:
    from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest

    return BrokerHeartbeatRequest(1, harness.epoch, harness.epoch, want_shut_down=True)  # type: ignore[attr-defined]


def test_a_request_whose_timeout_passes_while_it_waits_is_not_decided(harness: Harness) -> None:
    from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

    def send(name: str, timeout_ms: int, connection_id: int) -> tuple[int, int]:
        request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms)
        return harness.send(ApiKey.CREATE_TOPICS, 7, request, connection_id)

    large(harness)
    late, early = send("late", 100, 2), send("early", 101, 3)
    harness.advance(100)
    run_callbacks(harness)
    assert codes(harness.answer(late)) == {ErrorCode.REQUEST_TIMED_OUT}
    assert codes(harness.answer(early)) == {ErrorCode.NONE}
    assert harness.node.image.topic_named("late") is None
    assert harness.node.decisions.timed_out == 1


def test_validate_only_writes_no_records(harness: Harness) -> None:
    from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

    before = harness.storage.log.log_end
    request = CreateTopicsRequest([CreatableTopic(name, PARTITIONS, 1) for name in TOPICS], 30_000, True)
    place = harness.send(ApiKey.CREATE_TOPICS, 7, request)
    run_callbacks(harness)
    assert codes(harness.answer(place)) == {ErrorCode.NONE}
    assert harness.storage.log.log_end == before


def test_leadership_lost_before_the_append_refuses_it_and_waiting_calls(harness: Harness) -> None:
    place, behind = large(harness), harness.create("behind", connection_id=2)
    before = harness.storage.log.log_end
    run_callback(harness)
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    assert codes(harness.answer(place)) == {ErrorCode.NOT_CONTROLLER}
    assert codes(harness.answer(behind)) == {ErrorCode.NOT_CONTROLLER}
    assert not harness.node.decisions.long.busy
    assert harness.storage.log.log_end == before
    assert harness.node.image == replayed(harness)


def test_leadership_lost_between_append_and_application_undoes_it(harness: Harness) -> None:
    harness.sync_by_itself = False
    image = replayed(harness)
    place = large(harness)
    run_until_appended(harness)
    run_callback(harness)
    assert harness.node.decisions.long.busy
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    assert codes(harness.answer(place)) == {ErrorCode.NOT_CONTROLLER}
    assert harness.node.image == image
    assert harness.node.following.replay.next_offset == harness.node.core.high_watermark


def test_records_committed_before_they_are_applied_are_still_applied(harness: Harness) -> None:
    place = large(harness)
    run_until_appended(harness)  # and synced at once, so committed
    assert harness.node.core.high_watermark == harness.storage.log.log_end
    assert harness.answer(place) is None
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    assert codes(harness.answer(place)) == {ErrorCode.NONE}
    while harness.node.following.replay.busy:
        run_callback(harness)
    assert harness.node.image == replayed(harness)


def test_a_full_disk_refuses_it(harness: Harness) -> None:
    place = large(harness)
    harness.step(events.DiskFilled("no room"))
    run_callbacks(harness)
    assert codes(harness.answer(place)) == {ErrorCode.NOT_CONTROLLER}
    assert harness.node.image == replayed(harness)
