"""The status page's data: a moment of a controller, and every partition looked at in slices."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.metrics import survey as survey_module
from kraftd.metrics.status import status
from kraftd.metrics.survey import MAX_EXAMPLES, Survey, survey
from tests.controller_node.house import House
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
def house(tmp_path: Path) -> House:
    house = House(tmp_path).start()
    for broker_id in (1, 2):
        house.unfenced(broker_id)
    return house


def test_a_silent_brokers_partitions_are_counted_by_their_fault(house: House) -> None:
    house.create("t", partitions=4)
    session_ms = house.config.broker_session_timeout_ms
    house.advance(session_ms + 1_000)
    found, _ = whole(survey(house.node.image))
    assert found.offline.count == 4
    assert {one.topic for one in found.offline.examples} == {"t"}
    assert sum(hosted.replicas for hosted in found.brokers.values()) == 4
    assert sum(hosted.leads for hosted in found.brokers.values()) == 0


def test_a_healthy_cluster_has_nothing_that_needs_attention(house: House) -> None:
    house.create("t", partitions=4)
    found, _ = whole(survey(house.node.image))
    faults = (found.offline, found.under_replicated, found.under_min_isr, found.reassigning)
    assert [fault.count for fault in faults] == [0, 0, 0, 0]


def test_a_survey_goes_in_slices_and_names_only_the_first(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "SLICE_PARTITIONS", 10)
    house.create(*(f"t{at}" for at in range(10)), partitions=10)
    house.advance(house.config.broker_session_timeout_ms + 1_000)
    slices = survey(house.node.image)
    next(slices)
    removed = next(iter(house.node.image.topics))
    house.node.image.topics = {  # as when a topic is deleted meanwhile
        key: topic for key, topic in house.node.image.topics.items() if key != removed
    }
    found, count = whole(slices)
    assert count >= 8
    assert found.offline.count in (90, 100)
    assert len(found.offline.examples) == MAX_EXAMPLES


def test_the_status_names_leader_replicas_brokers_and_faults(house: House) -> None:
    house.create("t", partitions=4)
    found, _ = whole(survey(house.node.image))
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status(readings(house), found)))
    assert (told["ready"], told["leader_id"], told["role"]) == (True, 100, "leader")
    assert [one["id"] for one in told["replicas"] if one["is_leader"]] == [100]
    assert told["replicas"][0]["lag"] == 0
    assert [(one["id"], one["state"]) for one in told["brokers"]] == [(1, "active"), (2, "active")]
    assert sum(one["replicas"] for one in told["brokers"]) == 4
    assert told["features"]["metadata.version"] > 0
    assert (told["topic_count"], told["partition_count"]) == (1, 4)


def test_brokers_that_are_not_active_come_first(house: House) -> None:
    house.register(3)
    told = status(readings(house), None)
    assert [(one.id, one.state) for one in told.brokers] == [(3, "fenced"), (1, "active"), (2, "active")]
    assert told.brokers[0].replicas is None
