"""The status page's data: one controller's state, and a survey of every partition in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.histogram import Histogram
from kraftd.metrics import pages as pages_module
from kraftd.metrics.pages import Pages
from kraftd.metrics.serving.http import Request, Response
from kraftd.metrics.state import sliced as sliced_module
from kraftd.metrics.state import survey as survey_module
from kraftd.metrics.state.survey import MAX_EXAMPLES, Survey, survey
from kraftd.metrics.status_page.status import status
from tests.controller.cluster import Cluster, partition
from tests.controller_node.harness import Harness
from tests.metrics.watched import readings


def whole(slices: Generator[None, None, Survey]) -> tuple[Survey, int]:
    count = 0
    while True:
        try:
            next(slices)
            count += 1
        except StopIteration as done:
            return done.value, count


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path).start()
    for broker_id in (1, 2):
        harness.unfenced(broker_id)
    return harness


def test_partitions_of_a_silent_broker_are_counted_by_fault(harness: Harness) -> None:
    harness.create("t", partitions=4)
    session_ms = harness.config.broker_session_timeout_ms
    harness.advance(session_ms + 1_000)
    found, _ = whole(survey(harness.node.image))
    assert found.offline.count == 4
    assert {one.topic for one in found.offline.examples} == {"t"}
    assert sum(hosted.replicas for hosted in found.brokers.values()) == 4
    assert sum(hosted.leads for hosted in found.brokers.values()) == 0


def test_a_healthy_cluster_has_no_faults(harness: Harness) -> None:
    harness.create("t", partitions=4)
    found, _ = whole(survey(harness.node.image))
    faults = (found.offline, found.under_replicated, found.under_min_isr, found.reassigning)
    assert [fault.count for fault in faults] == [0, 0, 0, 0]


def counts(cluster: Cluster) -> dict[str, list[int]]:
    """The partitions of topic t by fault, as a survey finds them."""
    found, _ = whole(survey(cluster.image))
    groups = {
        "offline": found.offline,
        "under": found.under_replicated,
        "min": found.under_min_isr,
        "moving": found.reassigning,
    }
    assert all(group.count == len(group.examples) for group in groups.values())
    return {name: [one.partition for one in group.examples] for name, group in groups.items()}


def test_each_fault_of_a_partition_is_counted_separately() -> None:
    cluster = Cluster().brokers(1, 2, 3, 4)
    cluster.topic(
        "t",
        (1, 2, 3),
        partition((1, 2, 3), isr=(1, 2)),
        partition((1, 2, 3), isr=(2,)),
        partition((1, 2, 3), isr=(3,), leader=-1),
        partition((1, 2, 3, 4), isr=(1, 2, 3), adding_replicas=(4,)),
        partition((1, 2, 3, 4), isr=(1, 2), adding_replicas=(4,), removing_replicas=(1,)),
        (1,),
    )
    found = {"offline": [3], "under": [1, 2, 3, 5], "moving": [4, 5]}
    assert counts(cluster) == {**found, "min": []}
    cluster.config("min.insync.replicas", "2")
    assert counts(cluster) == {**found, "min": [2, 3]}  # the last has one replica alone
    cluster.config("min.insync.replicas", "3", topic="t")
    assert counts(cluster) == {**found, "min": [1, 2, 3, 5]}
    cluster.config("min.insync.replicas", "1", topic="t")
    assert counts(cluster) == {**found, "min": []}


def test_a_broker_has_counts_of_replicas_lagging_ones_and_led_partitions() -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2), (2, 1), partition((1, 2), isr=(1,)), (1,))
    found, _ = whole(survey(cluster.image))
    hosted = {id_: (one.replicas, one.lagging, one.leads) for id_, one in found.brokers.items()}
    assert hosted == {1: (4, 0, 3), 2: (3, 1, 1)}


def test_a_survey_runs_in_slices_and_names_a_limited_number_of_partitions(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "SLICE_PARTITIONS", 10)
    harness.create(*(f"t{at}" for at in range(10)), partitions=10)
    harness.advance(harness.config.broker_session_timeout_ms + 1_000)
    slices = survey(harness.node.image)
    next(slices)
    removed = next(iter(harness.node.image.topics))
    harness.node.image.topics = {  # as if a topic were deleted meanwhile
        key: topic for key, topic in harness.node.image.topics.items() if key != removed
    }
    found, count = whole(slices)
    assert count >= 8
    assert found.offline.count in (90, 100)
    assert len(found.offline.examples) == MAX_EXAMPLES


async def test_a_scrape_of_the_active_controller_counts_some_of_the_partitions(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "SLICE_PARTITIONS", 1)
    monkeypatch.setattr(sliced_module, "WRITE_BUDGET_NS", 0)
    monkeypatch.setattr(pages_module, "SCRAPE_SURVEY_NS", 1)
    harness.create("t", "u", "v", partitions=1)
    harness.advance(harness.config.broker_session_timeout_ms + 1_000)
    pages = Pages(lambda: readings(harness), lambda _: None)
    request = Request("GET", "/metrics", {}, keep_alive=True)
    texts = []
    for _ in range(5):
        answer = await pages.handle(request)
        assert isinstance(answer, Response)
        texts.append(answer.body.decode())
    counted = ["\nkraftd_under_min_isr_partitions 3.0\n" in text for text in texts]
    assert counted[0] is False  # a scrape ends when its time is spent
    assert counted[-1] is True
    assert "\nkraftd_under_replicated_partitions 3.0\n" in texts[-1]


@pytest.mark.parametrize("path", ["/metrics", "/status.json"])
async def test_many_requests_at_once_hold_the_loop_for_one_piece_at_a_time(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(sliced_module, "WRITE_BUDGET_NS", 0)
    monkeypatch.setattr(pages_module, "WRITE_BUDGET_NS", 0)
    made: list[int] = []
    monkeypatch.setattr(pages_module, "status", lambda *_: made.append(0) or {})
    held: list[int] = []
    pages = Pages(lambda: readings(harness), held.append)
    request = Request("GET", path, {}, keep_alive=True)
    asking = asyncio.gather(*(pages.handle(request) for _ in range(64)))
    most = 0
    while not asking.done():
        before = len(held)
        await asyncio.sleep(0)
        most = max(most, len(held) - before)
    bodies = {one.body for one in await asking if isinstance(one, Response)}
    assert most <= 2  # the end of one and the beginning of the next
    assert len(bodies) == 1 or path == "/metrics"
    assert len(made) <= 2 and len(bodies) <= 2  # one for the first, one that all others share
    before = len(held)
    await pages.handle(request)
    assert path != "/metrics" or len(held) > before  # nothing old is kept


async def test_a_terminal_obeys_no_name_in_the_status(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "User:\x9b31m\x7f\u202e"
    monkeypatch.setattr(pages_module, "status", lambda *_: {"principal": name})
    pages = Pages(lambda: readings(harness), lambda _: None)
    answer = await pages.handle(Request("GET", "/status.json", {}, keep_alive=True))
    assert isinstance(answer, Response)
    assert answer.body.isascii() and b"\x7f" not in answer.body
    assert msgspec.json.decode(answer.body) == {"principal": name}


def test_the_status_names_leader_replicas_brokers_and_faults(harness: Harness) -> None:
    harness.create("t", partitions=4)
    found, _ = whole(survey(harness.node.image))
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status(readings(harness), found)))
    assert (shown["ready"], shown["leader_id"], shown["role"]) == (True, 100, "leader")
    assert [one["id"] for one in shown["replicas"] if one["is_leader"]] == [100]
    assert shown["replicas"][0]["lag"] == 0
    assert [(one["id"], one["state"]) for one in shown["brokers"]] == [(1, "active"), (2, "active")]
    assert sum(one["replicas"] for one in shown["brokers"]) == 4
    assert shown["features"]["metadata.version"] > 0
    assert (shown["topic_count"], shown["partition_count"]) == (1, 4)


def test_inactive_brokers_come_first(harness: Harness) -> None:
    harness.register(3)
    shown = status(readings(harness), None)
    assert [(one.id, one.state) for one in shown.brokers] == [(3, "fenced"), (1, "active"), (2, "active")]
    assert shown.brokers[0].replicas is None


def test_a_replica_has_its_lag_and_last_contact(harness: Harness) -> None:
    end = harness.node.core.log_end_offset
    harness.fetch(end - 3)
    harness.clock.ms += 700
    shown = status(readings(harness), None)
    (one,) = [one for one in shown.replicas if one.id == 1]
    assert (one.is_voter, one.is_leader, one.is_self) == (False, False, False)
    assert (one.end_offset, one.lag, one.fetched_ms_ago) == (end - 3, 3, 700)


def test_the_status_has_features_events_and_the_times_of_loop_and_disk(harness: Harness) -> None:
    steps, syncs = Histogram([1_000_000]), Histogram([5_000_000])
    steps.counts, syncs.counts = [3, 1], [7, 0]
    event = {"event": "topics created", "text": "topics created: count 1"}
    shown = status(readings(harness, steps=steps, syncs=syncs, events=lambda: [event]), None)
    assert (shown.loop.counts, shown.fsync.counts, shown.events) == ([3, 1], [7, 0], [event])
    assert (shown.features["kraft.version"], shown.features["metadata.version"]) == (1, 30)


def test_a_broker_that_shuts_down_is_shown_as_such(harness: Harness) -> None:
    harness.create("t", partitions=4)
    epoch = harness.node.image.brokers[1].epoch
    harness.beat(1, epoch, current_metadata_offset=epoch, want_shut_down=True)
    shown = status(readings(harness), None)
    assert [(one.id, one.state) for one in shown.brokers] == [(1, "shutting down"), (2, "active")]
