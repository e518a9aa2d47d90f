"""Random requests for the state of share groups, to a stock broker and to kraftd's coordinator (KIP-932):
every answer is the same, and kraftd loads what the stock broker has written.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.coordinator import ShareCoordinator
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.groups.share_state.records import state_batches
from kraftd.groups.share_state.state_batches import combined
from kraftd.messages import (
    delete_share_group_state_request,
    initialize_share_group_state_request,
    read_share_group_state_request,
    read_share_group_state_summary_request,
    write_share_group_state_request,
)
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.process import HOST, wait_until
from tests.groups.share_state_desk import ShareStateDesk
from tests.kafka.groups.pair import PARTITIONS, Pair
from tests.kafka.groups.reading import load

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_GROUPS_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_SHARES_STEPS", "600"))
TOPIC = "__share_group_state"
CONFIG = ShareStateConfig(share_coordinator_snapshot_update_records_per_snapshot=4)
SHARE = 2


class Drawn:
    """Draws requests of two groups and three partitions, some of which there are not."""

    def __init__(self, random: Random, topic_ids: list[bytes], groups: list[str]) -> None:
        self.random = random
        self.groups = groups
        self.topic_ids = topic_ids

    def draw(self) -> tuple[Message, int]:
        of = self.random.choice([self.initialize, self.write, self.write, self.write, self.read])
        return self.random.choice([of, of, of, self.summarize, self.summarize, self.delete])()

    def place(self) -> tuple[str, bytes, int]:
        choice = self.random.choice
        topic_id = choice([*self.topic_ids * 8, b"\7" * 16])
        return (
            choice([one for one in self.groups for _ in range(8)] + [""]),
            topic_id,
            choice([0, 0, 0, 1, 1, 1, -1, 90]),
        )

    def epoch(self) -> int:
        return self.random.choice([-1, 0, 1, 1, 2, 3, 4])

    def initialize(self) -> tuple[Message, int]:
        of = initialize_share_group_state_request
        group, topic_id, partition = self.place()
        row = of.PartitionData(partition, self.epoch(), self.random.randrange(-1, 9))
        topics = [of.InitializeStateData(topic_id, [row])]
        return of.InitializeShareGroupStateRequest(group, topics), 0

    def write(self) -> tuple[Message, int]:
        of = write_share_group_state_request
        group, topic_id, partition = self.place()
        batches = []
        for _ in range(self.random.randrange(5)):
            first = self.random.randrange(20)
            last = first + self.random.choice([0, 0, 1, 2, 5])
            batches.append(
                of.StateBatch(first, last, self.random.choice([0, 2, 4]), self.random.randrange(3))
            )
        start = self.random.choice([-1, -1, self.random.randrange(15)])
        row = of.PartitionData(
            partition, self.epoch(), self.epoch(), start, self.random.randrange(4), batches
        )
        request = of.WriteShareGroupStateRequest(group, [of.WriteStateData(topic_id, [row])])
        if self.random.random() < 0.02:
            request.topics[0].partitions = []
        return request, 1

    def read(self) -> tuple[Message, int]:
        of = read_share_group_state_request
        group, topic_id, partition = self.place()
        topics = [of.ReadStateData(topic_id, [of.PartitionData(partition, self.epoch())])]
        return of.ReadShareGroupStateRequest(group, topics), 0

    def summarize(self) -> tuple[Message, int]:
        of = read_share_group_state_summary_request
        group, topic_id, partition = self.place()
        topics = [of.ReadStateSummaryData(topic_id, [of.PartitionData(partition, self.epoch())])]
        return of.ReadShareGroupStateSummaryRequest(group, topics), 1

    def delete(self) -> tuple[Message, int]:
        of = delete_share_group_state_request
        group, topic_id, partition = self.place()
        topics = [of.DeleteStateData(topic_id, [of.PartitionData(partition)])]
        return of.DeleteShareGroupStateRequest(group, topics), 0


def has_share_coordinator(client: Client, topic_id: bytes) -> bool:
    keys = tuple(SharePartitionKey("g", topic_id, partition).text for partition in range(40))
    found = client.call(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=keys), 6)
    if any(row.error_code for row in found.coordinators):
        return False
    of = read_share_group_state_summary_request
    rows = [of.PartitionData(partition) for partition in range(40)]
    request = of.ReadShareGroupStateSummaryRequest("g", [of.ReadStateSummaryData(topic_id, rows)])
    waiting = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return all(row.error_code not in waiting for row in client.call(request, 1).results[0].partitions)


def alike(answer: Any) -> Any:
    """An answer whose errors have one text, and whose batches are joined: Kafka's may be cut where nothing
    changes.
    """
    for topic in answer.results:
        for row in topic.partitions:
            row.error_message = row.error_message and "some"
            if hasattr(row, "state_batches"):
                row.state_batches = combined((), state_batches(row.state_batches), -1)
    return answer


def play_share_state(pair: Pair, seed: int, steps: int) -> set[int]:
    """Raise where an answer about share states, or a state differs; return the error codes."""
    ids = [topic_id for topic_id in pair.desk.topics.ids.values() if topic_id]  # type: ignore[attr-defined]
    desk = ShareStateDesk(CONFIG, PARTITIONS)
    desk.topics = pair.desk.topics
    desk.coordinator.topics = desk.topics
    groups = [f"g{seed}", f"a:b{seed}"]  # others use the broker as well
    drawn = Drawn(Random(seed), ids, groups)
    errors: set[int] = set()
    with Client(HOST, pair.port) as client:
        wait_until(lambda: has_share_coordinator(client, ids[0]), "the broker keeps share groups", 60)
        for step in range(steps):
            request, version = drawn.draw()
            own, theirs = alike(desk.ask(request, version)), alike(client.call(request, version))
            assert own == theirs, f"step {step}: {request!r}\n Kafka  {theirs!r}\n kraftd {own!r}"
            errors |= {row.error_code for topic in theirs.results for row in topic.partitions}
        loaded = ShareCoordinator(CONFIG, desk.topics)
        for partition in range(PARTITIONS):
            load(loaded, client, TOPIC, partition, desk.now_ms)
    assert states(loaded, groups) == states(desk.coordinator, groups)
    return errors


def states(coordinator: Any, groups: list[str]) -> Any:
    """By key of the drawn groups, without the times, which are those of two clocks."""
    return {
        key: (
            state.start_offset,
            state.batches,
            state.snapshot_epoch,
            state.update_count,
            state.state_epoch,
            state.leader_epoch,
            state.highest_state_epoch,
            state.highest_leader_epoch,
            state.delivery_complete_count,
        )
        for shard in coordinator.shards.values()
        for key, state in shard.states.items()
        if key.group_id in groups
    }


EXPECTED_ERRORS = {
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
}


def test_the_state_of_share_groups_is_that_of_a_stock_broker(group_broker: Cluster) -> None:
    errors = play_share_state(Pair(group_broker), SEED, STEPS)
    assert errors >= {0, *(int(error) for error in EXPECTED_ERRORS)}, errors
